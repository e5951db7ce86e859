// Charts with values under the pointer, legends that switch lines, slices of a sweep by a
// control, tables that sort by a click. Without this script the page has its static figures.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("chart-data").textContent);
  const DASHES = [[], [7, 3], [2, 3], [7, 3, 2, 3]];

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  const number = (value) => (value == null ? "–" : String(+value.toPrecision(4)));

  // a labelled select; choose is called with the position of what was chosen
  function control(bar, label, texts, choose, chosen = 0) {
    const select = element("select");
    texts.forEach((text, i) => select.append(element("option", { value: i }, text)));
    select.value = chosen;
    select.addEventListener("change", () => choose(+select.value));
    bar.append(element("label", {}, label + " ", select));
  }

  // lines: {label, colour, dash, points: [[x, y, half], ...], hidden}
  function draw(place, lines, xTitle, yTitle) {
    place.chart?.destroy();
    place.replaceChildren();
    if (!lines.length) {
      place.append("No two points of a line differ in this key alone.");
      return;
    }
    const all = [...new Set(lines.flatMap((line) => line.points.map(([x]) => x)))];
    const x = all.sort((a, b) => a - b);
    const rows = lines.map((line) => new Map(line.points.map((point) => [point[0], point])));
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim(), rule = style.getPropertyValue("--line").trim();
    const axis = (label) => ({
      label, stroke: ink, grid: { stroke: rule, width: 1 }, ticks: { stroke: rule }, labelSize: 24,
      values: (_, splits) => splits.map((value) => (value == null ? "" : String(+value.toPrecision(6)))),
    });
    const series = lines.map((line, i) => ({
      label: line.label, stroke: line.colour, width: 1.6, dash: line.dash, spanGaps: true,
      show: !line.hidden, points: { show: line.points.length <= 40, size: 6, fill: line.colour },
      value: (_, y, __, at) => {
        const half = at == null ? null : rows[i].get(x[at])?.[2];
        return number(y) + (half == null ? "" : " ± " + number(half));
      },
    }));
    const columns = rows.map((row) => x.map((value) => row.get(value)?.[1] ?? null));
    // lines have their points at different places: each shows its own nearest one
    const nearest = (_, i, at) => {
      if (!i) return at;
      const known = columns[i - 1];
      let [left, right] = [at, at];
      while (left >= 0 && known[left] == null) left -= 1;
      while (right < known.length && known[right] == null) right += 1;
      if (left < 0) return right;
      return right < known.length && x[right] - x[at] < x[at] - x[left] ? right : left;
    };
    const size = () => ({ width: place.clientWidth, height: place.clientWidth < 500 ? 260 : 340 });
    const pad = (x[x.length - 1] - x[0]) * 0.02 || Math.abs(x[0]) * 0.1 || 1;
    const options = {
      ...size(),
      scales: { x: { time: false, range: [x[0] - pad, x[x.length - 1] + pad] } },
      axes: [axis(xTitle), { ...axis(yTitle), size: 62 }],
      series: [{ label: xTitle, value: (_, value) => number(value) }, ...series],
      cursor: { focus: { prox: 24 }, dataIdx: nearest }, focus: { alpha: 0.35 },
    };
    place.chart = new uPlot(options, [x, ...columns], place);
    place.size = size;
    for (const name of place.querySelectorAll(".u-series th")) {
      name.tabIndex = 0;
      name.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); name.click(); }
      });
    }
  }

  function curves(found, host) {
    const bar = element("div", { class: "controls" }), place = element("div", { class: "chart" });
    host.append(element("h3", {}, "Curves"), bar, place);
    const state = { quantity: 0, axis: 0 };
    const show = () => {
      const { title, lines } = found.quantities[state.quantity], axis = found.axes[state.axis];
      draw(place, lines.map((line, i) => ({
        label: line.label, colour: line.colour, dash: line.dash, hidden: i >= found.shown,
        points: line[axis.name].map((x, j) => [x, line.y[j], line.half?.[j]]),
      })), axis.title, title);
    };
    const set = (key) => (value) => { state[key] = value; show(); };
    control(bar, "Show", found.quantities.map((each) => each.title), set("quantity"));
    control(bar, "against", found.axes.map((each) => each.title), set("axis"));
    show();
  }

  function sweep(found, host) {
    const bar = element("div", { class: "controls" }), place = element("div", { class: "chart" });
    const values = found.keys.map((_, k) => {
      const there = found.points.map((point) => point.at[k]).filter((value) => value != null);
      const isText = (value) => typeof value === "string";  // such as none, after the numbers
      return [...new Set(there)].sort((a, b) => isText(a) - isText(b) || a - b);
    });
    // beyond eight lines the first slice stands at the middle of every other key
    const many = new Set(found.points.map((p) => p.series + p.at.slice(1))).size > 8;
    const middle = values.map((each) => (many ? Math.ceil(each.length / 2) : 0));
    const state = { metric: 0, along: 0, slice: middle };
    const text = (value, k) => (typeof value === "string" ? value : `${value} ${found.keys[k].unit}`.trim());
    host.append(element("h3", {}, "Sweep"), bar, place);
    const show = () => {
      const groups = new Map();
      for (const point of found.points) {
        const others = found.keys.map((_, k) => k).filter((k) => k !== state.along);
        const inside = others.every((k) => {
          const chosen = state.slice[k] && values[k][state.slice[k] - 1];
          return !state.slice[k] || point.at[k] == null || point.at[k] === chosen;
        });
        const [y, half] = point.values[state.metric];
        if (!inside || typeof point.at[state.along] !== "number" || y == null) continue;
        const parts = others.filter((k) => !state.slice[k] && point.at[k] != null)
          .map((k) => `${found.keys[k].name} ${text(point.at[k], k)}`);
        const label = [point.series, ...parts].join(", ");
        if (!groups.has(label)) groups.set(label, { series: point.series, points: [] });
        groups.get(label).points.push([point.at[state.along], y, half]);
      }
      const used = {};
      const lines = [...groups].map(([label, group]) => {
        const n = (used[group.series] = (used[group.series] ?? -1) + 1);
        const points = group.points.sort((a, b) => a[0] - b[0]);
        return { label, points, colour: found.colours[group.series], dash: DASHES[n % DASHES.length] };
      });
      const drawn = lines.some((line) => line.points.length > 1) ? lines : [];
      draw(place, drawn, found.keys[state.along].title, found.metrics[state.metric]);
    };
    const controls = () => {
      bar.replaceChildren();
      const has = (m) => found.points.some((point) => point.values[m][0] != null);
      const metrics = found.metrics.map((_, m) => m).filter(has);
      if (!metrics.includes(state.metric)) state.metric = metrics[0];
      control(bar, "Show", metrics.map((m) => found.metrics[m]),
        (i) => { state.metric = metrics[i]; show(); }, metrics.indexOf(state.metric));
      control(bar, "against", found.keys.map((key) => key.title),
        (k) => { state.along = k; controls(); show(); }, state.along);
      found.keys.forEach((key, k) => {
        if (k === state.along) return;
        const texts = ["all", ...values[k].map((value) => text(value, k))];
        control(bar, `at ${key.name}`, texts, (i) => { state.slice[k] = i; show(); }, state.slice[k]);
      });
    };
    controls();
    show();
  }

  // by a click on a header: up, then down; cells without a number last
  function sortable(table) {
    const heads = [...table.querySelectorAll("thead th")], body = table.tBodies[0];
    heads.forEach((head, i) => {
      const button = element("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const value = (row) => row.cells[i].dataset.v ?? row.cells[i].textContent;
        const numeric = head.classList.contains("n");
        const rows = [...body.rows].map((row) => [row, value(row)]);
        rows.sort(([, a], [, b]) => {
          if (!numeric) return (up ? 1 : -1) * a.localeCompare(b, undefined, { numeric: true });
          const empty = (a === "" || a === "–") - (b === "" || b === "–");
          return empty || (up ? 1 : -1) * (Number(a) - Number(b));
        });
        body.append(...rows.map(([row]) => row));
      });
    });
  }

  const host = document.getElementById("explore-charts");
  if (data.sweep) sweep(data.sweep, host);
  if (data.curves) curves(data.curves, host);
  for (const place of document.querySelectorAll(".script-only")) place.hidden = !host.children.length;
  for (const place of host.querySelectorAll(".chart")) place.chart?.setSize(place.size());
  addEventListener("resize", () => {
    for (const place of host.querySelectorAll(".chart")) place.chart?.setSize(place.size());
  });
  document.querySelectorAll("table.sortable").forEach(sortable);
})();
