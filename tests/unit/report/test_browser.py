"""The page in a real browser: Debian's Chromium, headless. Skipped where it is not installed; CI installs it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attribution_samples as samples
import pytest

from nvprof_tools.report.base import Report
from nvprof_tools.report.html import HtmlPage

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver (Debian: chromium, chromium-driver)"
)
ELEMENTS = "Array.from(d.querySelectorAll('*'), n => n.tagName + ' ' + n.getAttributeNames().sort().join(' '))"
DOM = f"const d=document;return {ELEMENTS}"
PARSED = f"const d=new DOMParser().parseFromString(arguments[0],'text/html');return {ELEMENTS}"


def start(**logs: str) -> Any:
    os.environ.update(SE_OFFLINE="true", SE_AVOID_STATS="true")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1500,1000"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", **logs})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    driver = start()
    yield driver
    driver.quit()


def write(path: Path, report: Report) -> Path:
    with path.open("wb") as out:
        HtmlPage().render(report, out)
    return path


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("page") / "rich.html", Report(samples.rich(), samples.rich_trace()))


def opened(driver: Any, path: Path) -> Any:
    driver.get_log("browser")
    driver.get(path.as_uri())
    return driver


def view(driver: Any) -> list[float]:
    return list(driver.execute_script("return nvprofReport.view()"))


def requests(driver: Any) -> list[str]:
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


def test_no_error_and_no_request_but_for_the_page(rich: Path) -> None:
    driver = start(performance="ALL")
    try:
        opened(driver, rich)
        assert driver.get_log("browser") == []
        assert [url for url in requests(driver) if not url.startswith("data:")] == [rich.as_uri()]
    finally:
        driver.quit()


def test_the_policy_stops_what_slips_in(browser: Any, rich: Path) -> None:
    opened(browser, rich)
    browser.execute_script(
        "window.ran=false;const d=document.createElement('div');"
        'd.innerHTML=\'<img src=x onerror="window.ran=true"><img src="http://127.0.0.1:9/x.png">\';document.body.append(d);'
        "const s=document.createElement('script');s.textContent='window.ran=true';document.body.append(s)"
    )
    browser.execute_async_script("setTimeout(arguments[0],100)")
    assert browser.execute_script("return window.ran") is False
    refused = [entry["message"] for entry in browser.get_log("browser")]
    assert any("Content Security Policy" in text for text in refused)


def test_it_zooms_by_script_button_key_wheel_and_drag(browser: Any, rich: Path) -> None:
    opened(browser, rich)
    whole = view(browser)
    browser.execute_script("nvprofReport.setView(5e8, 5.1e8)")
    assert view(browser) == [5e8, 5.1e8]
    lanes = browser.find_element(By.ID, "lanes")
    browser.execute_script("nvprofReport.all()")
    assert view(browser) == whole

    def span() -> float:
        low, high = view(browser)
        return high - low

    browser.find_element(By.CSS_SELECTOR, "[data-act=in]").click()
    assert span() == pytest.approx((whole[1] - whole[0]) / 2)
    browser.execute_script("arguments[0].focus()", lanes)
    lanes.send_keys("+")
    assert span() == pytest.approx((whole[1] - whole[0]) / 4)
    before = view(browser)
    lanes.send_keys(Keys.ARROW_RIGHT)
    assert view(browser)[0] > before[0]
    lanes.send_keys("0")
    assert view(browser) == whole
    over = browser.find_element(By.CSS_SELECTOR, "#lanes .u-over")
    browser.execute_script("arguments[0].scrollIntoView({block:'center'})", over)
    ActionChains(browser).move_to_element(over).scroll_from_origin(
        webdriver.common.actions.wheel_input.ScrollOrigin.from_element(over), 0, -200
    ).perform()
    assert span() < whole[1] - whole[0]
    browser.execute_script("nvprofReport.all()")
    ActionChains(browser).move_to_element(over).click_and_hold().move_by_offset(120, 0).release().perform()
    width = browser.execute_script("return arguments[0].clientWidth", over)
    assert span() == pytest.approx((whole[1] - whole[0]) * 120 / width, rel=0.05)


def test_it_zooms_down_to_one_launch(browser: Any, rich: Path) -> None:
    opened(browser, rich)
    place = browser.execute_script(
        "const k=nvprofReport.labels().indexOf('CUDA calls 1');const p=nvprofReport.locate(k,3);"
        "nvprofReport.setView(p.start-1000,p.end+1000);return nvprofReport.locate(k,3)"
    )
    assert place["end"] - place["start"] == 5_000
    assert view(browser) == [place["start"] - 1000, place["end"] + 1000]


def test_hover_shows_the_kernels_name_times_and_evidence(browser: Any, rich: Path) -> None:
    opened(browser, rich)
    place = browser.execute_script(
        "document.getElementById('lanes').scrollIntoView({block:'center'});"
        "const k=nvprofReport.labels().indexOf('GPU 0 kernels');let p=nvprofReport.locate(k,100);"
        "nvprofReport.setView(p.start-1e6,p.end+1e6);return nvprofReport.locate(k,100)"
    )
    assert place["name"] in {n for names in samples.KERNELS.values() for n in names}
    chain = ActionChains(browser)
    chain.w3c_actions.pointer_action.move_to_location(int(place["x"]), int(place["y"]))
    chain.perform()
    tip = browser.find_element(By.ID, "tip")
    assert tip.is_displayed()
    assert place["name"] in tip.text
    assert "evidence: KERNEL" in tip.text
    assert "GPU 0 kernels · kernel: " in tip.text


def test_events_can_be_read_without_a_mouse(browser: Any, rich: Path) -> None:
    opened(browser, rich)
    lanes = browser.find_element(By.ID, "lanes")
    browser.execute_script("arguments[0].focus()", lanes)
    lanes.send_keys("]")
    first = browser.find_element(By.ID, "event").text
    lanes.send_keys("]")
    second = browser.find_element(By.ID, "event").text
    assert "evidence: KERNEL" in first
    assert "evidence: KERNEL" in second
    assert first != second
    lanes.send_keys(Keys.ARROW_DOWN)
    assert "GPU 0 copies" in browser.find_element(By.ID, "event").text


def test_tables_sort_both_ways_and_keep_what_is_missing_last(browser: Any, rich: Path) -> None:
    opened(browser, rich)
    heads = browser.find_elements(By.CSS_SELECTOR, "#overheads thead th")
    idle = next(h for h in heads if h.text.startswith("device idle"))

    def column() -> list[str]:
        return [
            c.get_attribute("data-sort")
            for c in browser.find_elements(By.CSS_SELECTOR, "#overheads tbody td:nth-child(9)")
        ]

    idle.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    assert idle.get_attribute("aria-sort") == "descending"
    known = [int(v) for v in column() if v != ""]
    assert known == sorted(known, reverse=True)
    assert known[0] == 193_700_000
    idle.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    assert idle.get_attribute("aria-sort") == "ascending"
    values = column()
    known = [int(v) for v in values if v != ""]
    assert known == sorted(known)
    assert values[-3:] == ["", "", ""]


def test_a_gap_and_a_partition_jump_to_their_place(browser: Any, rich: Path) -> None:
    opened(browser, rich)
    for selector in ("#gaps tbody button", "#partitions li button"):
        button = browser.find_element(By.CSS_SELECTOR, selector)
        origin = int(browser.execute_script("return JSON.parse(document.getElementById('data').textContent).origin"))
        start, end = (int(button.get_attribute(name)) - origin for name in ("data-from", "data-to"))
        browser.execute_script("arguments[0].click()", button)
        low, high = view(browser)
        assert low <= start
        assert end <= high
        assert high - low <= 2 * (end - start)


def test_dark_and_light(browser: Any, rich: Path) -> None:
    opened(browser, rich)
    paper = "return getComputedStyle(document.body).backgroundColor"
    before = browser.execute_script(paper)
    browser.execute_script("document.getElementById('theme').click()")
    assert browser.execute_script(paper) != before
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("name", [n for n in samples.AWKWARD if n != "hostile"])
def test_awkward_runs_open_without_an_error(browser: Any, tmp_path: Path, name: str) -> None:
    opened(browser, write(tmp_path / "page.html", Report(*samples.AWKWARD[name]())))
    assert browser.get_log("browser") == []
    assert browser.find_element(By.TAG_NAME, "h1").text


def test_any_zoom_of_200000_events_draws_few_rectangles(browser: Any, tmp_path: Path) -> None:
    report = Report(samples.many_segments(), samples.many_kernels_trace())
    opened(browser, write(tmp_path / "page.html", report))
    low, high = view(browser)
    while high - low > 100:
        inside = browser.execute_script(
            "const [a,b]=nvprofReport.view(),[w0,w1]=nvprofReport.whole();"
            "return nvprofReport.drawn().map(n => n * (b - a) / (w1 - w0))"
        )
        assert max(inside) < 20_000
        browser.execute_script("nvprofReport.zoom(0.3)")
        low, high = view(browser)


def test_hostile_names_change_nothing_in_the_document(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "page.html"

    def made(payload: str) -> Path:
        return write(path, Report(samples.hostile(payload), samples.hostile_trace(payload)))

    opened(browser, made("plain"))
    parsed = browser.execute_script(PARSED, path.read_text("utf-8"))
    running = browser.execute_script(DOM)
    assert len(samples.HOSTILE) >= 30
    for i, payload in enumerate(samples.HOSTILE):
        made(payload)
        assert browser.execute_script(PARSED, path.read_text("utf-8")) == parsed
        if i % 9 == 0:
            opened(browser, path)
            assert browser.get_log("browser") == []
            assert browser.execute_script(DOM) == running
