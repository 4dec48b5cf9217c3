"use strict";
/* The timeline: lanes drawn on a uPlot through its hooks, curves on further uPlots, all on one time axis.
   Names come from a trace: they only ever become text of an element or of a canvas. */
const nvprofTimeline = (function () {
  const ROW = 20, LABEL = 190, MIN_SPAN = 20;
  const cssVar = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const clamp = (x, low, high) => Math.min(Math.max(x, low), high);

  function decode(level) {
    const text = atob(level.data), n = level.n;
    const start = new Float64Array(n), end = new Float64Array(n), name = new Uint32Array(n), kind = new Uint16Array(n);
    const count = level.whole ? null : new Float64Array(n), busy = level.whole ? null : new Float64Array(n);
    let at = 0, before = 0;
    const next = () => {
      let value = 0, scale = 1, byte;
      do { byte = text.charCodeAt(at++); value += (byte & 127) * scale; scale *= 128; } while (byte & 128);
      return value;
    };
    for (let i = 0; i < n; i++) {
      start[i] = before + next();
      before = end[i] = start[i] + next();
      name[i] = next();
      kind[i] = next();
      if (count) { count[i] = next(); busy[i] = next(); }
    }
    return { res: level.res, n, start, end, name, kind, count, busy };
  }

  /* The first index whose end lies after t. */
  function firstAfter(end, t) {
    let low = 0, high = end.length;
    while (low < high) { const mid = (low + high) >> 1; if (end[mid] > t) high = mid; else low = mid + 1; }
    return low;
  }

  function duration(ns) {
    const size = Math.abs(ns);
    for (const [limit, scale, unit] of [[1e3, 1, "ns"], [1e6, 1e3, "µs"], [1e9, 1e6, "ms"], [Infinity, 1e9, "s"]])
      if (size < limit) return (ns / scale).toFixed(scale === 1 ? 0 : size / scale < 10 ? 2 : size / scale < 100 ? 1 : 0) + " " + unit;
    return "";
  }

  function ticks(splits, step, zero) {
    const [scale, unit] = step >= 1e8 ? [1e9, "s"] : step >= 1e5 ? [1e6, "ms"] : step >= 100 ? [1e3, "µs"] : [1, "ns"];
    const digits = clamp(Math.ceil(-Math.log10(step / scale)), 0, 6);
    return splits.map(t => ((t - zero) / scale).toFixed(digits) + " " + unit);
  }

  function make(data, root, curvesRoot, onEvent, onRange) {
    const lanes = data.lanes.map(lane => Object.assign({}, lane, { levels: lane.levels.map(decode) }));
    const whole = [0, Math.max(data.wall, MIN_SPAN)];
    let view = whole.slice(), charts = [], main = null, chosen = 0, picked = -1, busy = false;
    const zero = data.window[0];
    const incrs = [];
    for (let e = 0; e <= 15; e++) for (const m of [1, 2, 5]) incrs.push(m * 10 ** e);

    const levelFor = (lane, nsPerPixel) => {
      let best = lane.levels[0];
      for (const level of lane.levels) if (level.res <= nsPerPixel * 1.5) best = level;
      return best;
    };

    const axis = (more) => Object.assign({
      stroke: cssVar("--dim"), grid: { stroke: cssVar("--line"), width: 1 }, ticks: { stroke: cssVar("--line"), width: 1 },
      font: "12px system-ui, sans-serif",
    }, more);
    const timeAxis = () => axis({
      incrs, space: 90, size: 34,
      splits: (u, i, low, high, step) => {
        const out = [];
        for (let k = Math.ceil((low - zero) / step); zero + k * step <= high; k++) out.push(zero + k * step);
        return out;
      },
      values: (u, splits, i, space, step) => ticks(splits, step, zero),
    });
    const labelAxis = (more) => axis(Object.assign({ scale: "y", size: LABEL, gap: 6 }, more));

    function fit(text, context, width) {
      if (context.measureText(text).width <= width) return text;
      while (text.length > 1 && context.measureText(text + "…").width > width) text = text.slice(0, -1);
      return text + "…";
    }

    function drawLanes(u) {
      const context = u.ctx, { left, top, width, height } = u.bbox, ratio = devicePixelRatio;
      const low = u.scales.x.min, span = u.scales.x.max - low, scale = width / span, row = height / lanes.length;
      context.save();
      context.beginPath();
      context.rect(left, top, width, height);
      context.clip();
      context.font = 11 * ratio + "px system-ui, sans-serif";
      context.textBaseline = "middle";
      context.textAlign = "left";
      const paper = cssVar("--page"), ink = cssVar("--line");
      lanes.forEach((lane, k) => {
        const y = top + k * row, level = levelFor(lane, span / width);
        if (k && lanes[k - 1].group !== lane.group) {
          context.fillStyle = cssVar("--dim");
          context.fillRect(left, y - ratio / 2, width, ratio);
        }
        let i = firstAfter(level.end, low), last = -1;
        for (; i < level.n && level.start[i] <= low + span; i++) {
          const x0 = left + (level.start[i] - low) * scale, x1 = left + (level.end[i] - low) * scale;
          const from = Math.max(x0, left - 2), to = Math.min(x1, left + width + 2);
          const wide = Math.max(to - from, 0.75 * ratio);
          if (from + wide <= last) continue;
          last = from + wide;
          const dense = level.busy ? clamp(level.busy[i] / Math.max(level.end[i] - level.start[i], 1), 0.15, 1) : 1;
          context.globalAlpha = dense;
          context.fillStyle = data.classes[level.kind[i]][1];
          context.fillRect(from, y + 2 * ratio, wide, row - 4 * ratio);
          context.globalAlpha = 1;
          if (wide > 3 * ratio && (!level.count || level.count[i] === 1)) {
            context.fillStyle = paper;
            context.fillRect(from + wide - ratio / 2, y + 2 * ratio, ratio / 2, row - 4 * ratio);
          }
          if (wide > 46 * ratio && (!level.count || level.count[i] === 1)) {
            context.fillStyle = textOn(data.classes[level.kind[i]][1]);
            context.fillText(fit(data.names[level.name[i]], context, wide - 8 * ratio), from + 4 * ratio, y + row / 2);
          }
        }
        if (k === chosen && picked >= 0 && document.activeElement === root) {
          const fine = lane.levels[0], x = left + (fine.start[picked] - low) * scale;
          context.strokeStyle = cssVar("--focus");
          context.lineWidth = 2 * ratio;
          context.strokeRect(x, y + ratio, Math.max((fine.end[picked] - fine.start[picked]) * scale, 2), row - 2 * ratio);
        }
      });
      context.fillStyle = ink;
      for (const edge of data.window) context.fillRect(left + (edge - low) * scale - ratio / 2, top, ratio, height);
      context.restore();
    }

    const inks = new Map();
    function textOn(colour) {
      if (!inks.has(colour)) {
        const [r, g, b] = [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16) / 255);
        inks.set(colour, 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.45 ? "#111" : "#fff");
      }
      return inks.get(colour);
    }

    function setView(low, high) {
      let span = clamp(high - low, MIN_SPAN, whole[1] - whole[0]);
      low = clamp(low, whole[0], whole[1] - span);
      view = [low, low + span];
      busy = true;
      for (const chart of charts) chart.setScale("x", { min: view[0], max: view[1] });
      busy = false;
      onRange(`${duration(view[0] - zero)} to ${duration(view[1] - zero)}: ${duration(view[1] - view[0])} shown`);
    }
    const zoomAt = (t, factor) => setView(t - (t - view[0]) * factor, t + (view[1] - t) * factor);
    const middle = () => (view[0] + view[1]) / 2;

    function describe(k, level, i) {
      const lane = lanes[k], start = level.start[i], end = level.end[i];
      const many = level.count && level.count[i] > 1;
      return {
        title: many ? `${level.count[i].toLocaleString("en")} events, mostly ${data.names[level.name[i]]}` : data.names[level.name[i]],
        lines: [
          `${lane.label} · ${data.classes[level.kind[i]][0]}`,
          `${duration(start - zero)} to ${duration(end - zero)} · ${duration(end - start)}` + (many ? ` · ${duration(level.busy[i])} in events` : ""),
          `evidence: ${lane.evidence}`,
        ],
      };
    }

    function eventAt(t, y) {
      const k = Math.floor(y / (main.bbox.height / devicePixelRatio) * lanes.length);
      if (!(k >= 0 && k < lanes.length)) return null;
      const level = lanes[k].levels[0], slack = (view[1] - view[0]) / (main.bbox.width / devicePixelRatio) * 1.5;
      let i = firstAfter(level.end, t - slack);
      if (i >= level.n || level.start[i] > t + slack) return null;
      while (i + 1 < level.n && level.end[i] <= t && level.start[i + 1] <= t) i++;
      return describe(k, level, i);
    }

    function select(k, i) {
      chosen = clamp(k, 0, lanes.length - 1);
      const level = lanes[chosen].levels[0];
      picked = level.n ? clamp(i, 0, level.n - 1) : -1;
      if (picked >= 0) {
        const span = view[1] - view[0];
        if (level.start[picked] < view[0] || level.end[picked] > view[1]) {
          const wanted = Math.max(span, (level.end[picked] - level.start[picked]) * 1.2), mid = (level.start[picked] + level.end[picked]) / 2;
          setView(mid - wanted / 2, mid + wanted / 2);
        }
        const found = describe(chosen, level, picked);
        onEvent([found.title, ...found.lines].join(" · "), null);
      } else onEvent(lanes[chosen].label + ": no events", null);
      main.redraw(false);
    }

    function keys(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const span = view[1] - view[0];
      const acts = {
        ArrowLeft: () => setView(view[0] - span / 5, view[1] - span / 5),
        ArrowRight: () => setView(view[0] + span / 5, view[1] + span / 5),
        "+": () => zoomAt(middle(), 0.5), "=": () => zoomAt(middle(), 0.5), "-": () => zoomAt(middle(), 2),
        "0": () => setView(whole[0], whole[1]), Home: () => setView(whole[0], whole[0] + span), End: () => setView(whole[1] - span, whole[1]),
        ArrowUp: () => select(chosen - 1, nearest(chosen - 1)), ArrowDown: () => select(chosen + 1, nearest(chosen + 1)),
        "[": () => select(chosen, picked - 1), "]": () => select(chosen, picked + 1),
      };
      if (acts[event.key] && lanes.length) { acts[event.key](); event.preventDefault(); }
    }
    const nearest = k => firstAfter(lanes[clamp(k, 0, lanes.length - 1)].levels[0].end, view[0]);

    function pointer(u) {
      const over = u.over;
      let grip = null;
      over.addEventListener("wheel", event => {
        event.preventDefault();
        const t = u.posToVal(event.clientX - over.getBoundingClientRect().left, "x");
        if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          const step = event.deltaX / over.clientWidth * (view[1] - view[0]);
          setView(view[0] + step, view[1] + step);
        } else zoomAt(t, event.deltaY > 0 ? 1.25 : 0.8);
      }, { passive: false });
      over.addEventListener("mousedown", event => {
        if (!event.shiftKey) return;
        event.stopImmediatePropagation();
        event.preventDefault();
        grip = { x: event.clientX, view: view.slice() };
      }, true);
      window.addEventListener("mousemove", event => {
        if (!grip) return;
        const step = (grip.x - event.clientX) / over.clientWidth * (grip.view[1] - grip.view[0]);
        setView(grip.view[0] + step, grip.view[1] + step);
      });
      window.addEventListener("mouseup", () => { grip = null; });
      over.addEventListener("dblclick", () => setView(whole[0], whole[1]));
    }

    function common(width) {
      return {
        width, padding: [8, 8, 0, 0], legend: { show: false },
        cursor: { sync: { key: "time", setSeries: false }, drag: { x: true, y: false, setScale: false, uni: 5 }, y: false, points: { show: false } },
        hooks: {
          setSelect: [u => {
            if (u.select.width > 3) setView(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x"));
            u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          }],
          ready: [pointer],
        },
      };
    }
    const scaleX = () => ({ time: false, auto: false, min: view[0], max: view[1], range: (u, low, high) => [low ?? whole[0], high ?? whole[1]] });

    function build() {
      for (const chart of charts) chart.destroy();
      charts = [];
      curvesRoot.replaceChildren();
      const width = Math.max(root.clientWidth - 2, 320);
      if (lanes.length) {
        const options = common(width);
        options.height = lanes.length * ROW + 50;
        options.scales = { x: scaleX(), y: { range: () => [0, lanes.length], dir: -1 } };
        options.axes = [timeAxis(), labelAxis({
          splits: () => lanes.map((_, k) => k + 0.5),
          values: u => lanes.map(lane => fit(lane.label, u.ctx, (LABEL - 22) * devicePixelRatio)),
          grid: { show: false }, ticks: { show: false }, stroke: cssVar("--text"),
        })];
        options.series = [{}, { scale: "y", paths: () => null, points: { show: false } }];
        options.hooks.draw = [drawLanes];
        options.hooks.setCursor = [u => {
          const { left, top } = u.cursor;
          onEvent(null, left >= 0 && u.cursor.event ? { found: eventAt(u.posToVal(left, "x"), top), event: u.cursor.event } : null);
        }];
        main = new uPlot(options, [whole, [null, null]], root);
        charts.push(main);
      }
      for (const group of data.curves) {
        const title = document.createElement("h3"), holder = document.createElement("div");
        title.textContent = group.label;
        holder.className = "chart";
        curvesRoot.append(title, holder);
        const options = common(width);
        options.height = 130;
        options.legend = { show: true, live: true };
        options.scales = { x: scaleX(), y: { range: (u, low, high) => [0, group.unit === "%" ? Math.max(100, high) : Math.max(1, high)] } };
        options.axes = [timeAxis(), labelAxis({ values: (u, splits) => splits.map(v => v + (group.unit ? " " + group.unit : "")) })];
        const paths = group.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined;
        options.series = [
          { label: "time", value: (u, t) => t == null ? "–" : duration(t - zero) },
          ...group.series.map(s => ({ label: s.label, stroke: s.colour, width: 1.5, paths, spanGaps: true, points: { show: false }, value: (u, v) => v == null ? "–" : v + (group.unit ? " " + group.unit : "") })),
        ];
        const joined = uPlot.join(group.series.map(s => [s.x, s.y]));
        charts.push(new uPlot(options, joined, holder));
      }
      setView(view[0], view[1]);
    }

    root.addEventListener("keydown", keys);
    root.addEventListener("focus", () => main && main.redraw(false));
    build();
    let timer = 0;
    window.addEventListener("resize", () => { clearTimeout(timer); timer = setTimeout(build, 120); });
    return {
      setView, rebuild: build, view: () => view.slice(), whole: () => whole.slice(),
      window: () => setView(data.window[0], data.window[1]), all: () => setView(whole[0], whole[1]),
      zoom: factor => zoomAt(middle(), factor), pan: share => { const s = (view[1] - view[0]) * share; setView(view[0] + s, view[1] + s); },
      drawn: () => lanes.map(lane => levelFor(lane, (view[1] - view[0]) / (main.bbox.width || 1)).n),
      /* Where on the screen an event of the finest level lies: for tests and for help. */
      locate: (k, i) => {
        const level = lanes[k].levels[0], box = main.over.getBoundingClientRect();
        const t = (Math.max(level.start[i], view[0]) + Math.min(level.end[i], view[1])) / 2;
        return { x: box.left + (t - view[0]) / (view[1] - view[0]) * box.width, y: box.top + (k + 0.5) * box.height / lanes.length, name: data.names[level.name[i]], start: level.start[i], end: level.end[i], n: level.n };
      },
      labels: () => lanes.map(lane => lane.label),
    };
  }
  return { make, duration };
})();
