"""Pictures of the example page, light and dark, for the README: needs chromium, chromedriver, selenium and Pillow."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path

from PIL import Image
from selenium import webdriver

REPORTS = Path(__file__).resolve().parent.parent / "reports"
WIDTH, TOP, HEIGHT = 1400, 330, 1560


def main() -> None:
    """Write ``reports/light.png`` and ``reports/dark.png``: the finding and the timeline, without the tables."""
    os.environ.update(SE_OFFLINE="true", SE_AVOID_STATS="true")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={WIDTH},{TOP + HEIGHT}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options, webdriver.ChromeService(executable_path=shutil.which("chromedriver")))
    try:
        for theme in ("light", "dark"):
            driver.get((REPORTS / "p9_gw2.html").as_uri())
            driver.execute_script(f"document.documentElement.dataset.theme='{theme}';nvprofReport.rebuild()")
            driver.execute_async_script("requestAnimationFrame(()=>setTimeout(arguments[0],200))")
            image = Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB").crop((0, 0, WIDTH, HEIGHT))
            small = image.resize((1050, HEIGHT * 1050 // WIDTH), Image.Resampling.LANCZOS).quantize(96)
            small.save(REPORTS / f"{theme}.png", optimize=True)
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
