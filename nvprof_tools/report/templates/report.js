"use strict";
/* The page around the timeline: theme, buttons that jump, hover, sortable tables. */
(function () {
  const byId = id => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const tip = byId("tip");

  function hover(found) {
    if (!found || !found.found) { tip.hidden = true; return; }
    const title = document.createElement("strong");
    title.textContent = found.found.title;
    tip.replaceChildren(title, ...found.found.lines.map(line => { const row = document.createElement("div"); row.textContent = line; return row; }));
    tip.hidden = false;
    const x = found.event.clientX + 14, y = found.event.clientY + 14;
    tip.style.left = Math.max(4, Math.min(x, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = (y + tip.offsetHeight > innerHeight ? found.event.clientY - tip.offsetHeight - 10 : y) + "px";
  }

  const timeline = nvprofTimeline.make(data, byId("lanes"), byId("curves"), (said, found) => {
    if (said !== null) byId("event").textContent = said;
    else hover(found);
  }, text => { byId("range").textContent = text; });
  byId("lanes").addEventListener("mouseleave", () => { tip.hidden = true; });
  window.nvprofReport = timeline;

  const acts = {
    in: () => timeline.zoom(0.5), out: () => timeline.zoom(2), left: () => timeline.pan(-0.3), right: () => timeline.pan(0.3),
    window: timeline.window, all: timeline.all,
  };
  for (const button of document.querySelectorAll("[data-act]")) button.addEventListener("click", acts[button.dataset.act]);

  /* Times pass 2^53 on long captures: the difference is taken exactly, then it is small. */
  const origin = BigInt(data.origin);
  for (const button of document.querySelectorAll("button[data-from]")) {
    button.addEventListener("click", () => {
      const from = Number(BigInt(button.dataset.from) - origin), to = Number(BigInt(button.dataset.to) - origin);
      const margin = Math.max((to - from) * 0.25, 50);
      timeline.setView(from - margin, to + margin);
      byId("timeline").scrollIntoView();
      byId("lanes").focus({ preventScroll: true });
    });
  }

  const legend = byId("legend"), seen = new Set();
  for (const [label, colour] of data.classes) {
    if (seen.has(label)) continue;
    seen.add(label);
    const key = document.createElement("span"), swatch = document.createElement("i");
    key.className = "key";
    swatch.className = "swatch";
    swatch.style.background = colour;
    key.append(swatch, label);
    legend.append(key);
  }

  byId("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    timeline.rebuild();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => timeline.rebuild());

  function sortBy(table, column, button) {
    const head = button.parentElement, up = head.getAttribute("aria-sort") === "descending" || (!head.hasAttribute("aria-sort") && !head.classList.contains("num"));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = row => { const cell = row.cells[column]; return cell.dataset.sort !== undefined ? cell.dataset.sort : cell.textContent.trim(); };
    const numeric = head.classList.contains("num");
    const rows = Array.from(table.tBodies[0].rows);
    rows.sort((a, b) => {
      const x = key(a), y = key(b);
      if (x === "" || y === "") return (x === "") - (y === "");
      const order = numeric ? Number(x) - Number(y) : x.localeCompare(y, "en");
      return up ? order : -order;
    });
    table.tBodies[0].append(...rows);
  }
  for (const table of document.querySelectorAll("table.sortable")) {
    Array.from(table.tHead.rows[0].cells).forEach((head, column) => {
      if (head.dataset.nosort !== undefined) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sortBy(table, column, button));
    });
  }
})();
