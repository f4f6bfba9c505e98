// The kernels by time: a table, the roofline, and what limits the one that is chosen.

const FIRST_ROWS = 14;
const NAMED = 9; // kernels whose numbers are in the roofline
const APART = 18; // pixels between the middles of two numbers
const LEAST_INTENSITY = 0.01; // operations per byte: below, a kernel moves data, and would take all the width of the picture

function showKernels() {
  byId("kernels-note").textContent = timed
    ? `Timed one by one on one core, in the model's own memory, on random inputs: other values may take another time where results underflow. All calls together take ${secondsText(total)}; at the machine's limits they would take ${secondsText(limitOfAll())}.`
    : "Not timed: the page was written without times, or for another machine.";
  const rows = facts.kernels.map(kernelRow);
  const body = html("tbody", {}, rows.slice(0, FIRST_ROWS));
  const headings = timed
    ? [["#", "number"], ["kernel", ""], ["calls", "number wide"], ["one call", "number"], ["of all", "share"], ["GFLOP/s", "number wide"], ["of limit", "number wide"], ["limited by", "wide"]]
    : [["#", "number"], ["kernel", ""], ["calls", "number"], ["code", "number"], ["made in", "number wide"]];
  byId("kernel-table").append(html("table", { class: "kernels" },
    html("thead", {}, html("tr", {}, headings.map(([text, cls]) => html("th", { class: cls, scope: "col" }, text)))), body));
  if (rows.length > FIRST_ROWS) {
    const more = html("button", { type: "button", class: "more", onclick: () => { body.append(...rows.slice(FIRST_ROWS)); more.remove(); } },
      `Show all ${rows.length} kernels`);
    byId("kernel-table").append(more);
  }
  onChoice(() => rows.forEach((row, n) => row.classList.toggle("chosen", n === chosen.kernel)));
  if (!timed) {
    byId("timing").hidden = true;
    return;
  }
  drawInto(byId("roofline"), drawRoofline);
  onChoice(() => showLimits(facts.kernels[Math.max(0, chosen.kernel)]));
}

function limitOfAll() {
  return facts.kernels.reduce((sum, k) => sum + (k.timing ? k.timing.limit * k.calls : 0), 0);
}

function kernelRow(k, n) {
  const name = html("td", { class: "name" }, html("b", {}, named(k.name)), html("span", {}, k.source));
  const cells = [html("td", { class: "number soft" }, String(k.number)), name];
  const t = k.timing;
  if (t) {
    const bar = html("div", { class: "meter", style: `--part:${(shareOf(k) / (shareOf(facts.kernels[0]) || 1)).toFixed(4)}` });
    cells.push(html("td", { class: "number wide" }, `${k.calls}`), html("td", { class: "number" }, secondsText(t.seconds)),
      html("td", { class: "share" }, bar, html("span", {}, percentText(shareOf(k)))),
      html("td", { class: "number wide" }, t.operations ? (t.operations / t.seconds / 1e9).toFixed(1) : "–"),
      html("td", { class: "number wide" }, percentText(Math.min(1, t.share))),
      html("td", { class: "wide bound", title: t.bound }, t.cause));
  } else {
    cells.push(html("td", { class: "number" }, String(k.calls)), html("td", { class: "number" }, bytesText(k.code)),
      html("td", { class: "number wide" }, secondsText(k.made)));
  }
  const row = html("tr", { tabindex: 0, "data-kernel": n, onclick: () => choose(n, null, "table") }, cells);
  row.addEventListener("keydown", (e) => {
    if (e.key === "Enter" || e.key === " ") { e.preventDefault(); choose(n, null, "table"); }
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      (e.key === "ArrowDown" ? row.nextElementSibling : row.previousElementSibling)?.focus();
    }
  });
  return row;
}

function drawRoofline(width) {
  const shown = facts.kernels.map((k, n) => ({ k, n, t: k.timing })).filter(({ t }) => t && t.seconds > 0 && t.operations >= LEAST_INTENSITY * t.bytes)
    .map((d) => ({ ...d, x: d.t.operations / d.t.bytes, y: d.t.operations / d.t.seconds / 1e9, share: shareOf(d.k) }));
  const height = Math.max(260, Math.min(400, width * 0.6)), edge = { left: 46, right: 12, top: 14, bottom: 40 };
  const { peak, levels } = facts.roofs;
  const { left, right, low, high } = extent(shown, peak, levels);
  const scale = (from, to, a, b) => (v) => a + ((Math.log(v) - Math.log(from)) / (Math.log(to) - Math.log(from))) * (b - a);
  const X = scale(left, right, edge.left, width - edge.right), Y = scale(low, high, height - edge.bottom, edge.top);
  const decades = (a, b) => { const all = []; for (let e = Math.ceil(Math.log10(a)); 10 ** e <= b; e++) all.push(10 ** e); return all; };
  const grid = svg("g", { class: "grid" });
  const short = (v) => (v >= 1 ? String(v) : v.toPrecision(1));
  for (const v of decades(left, right)) {
    grid.append(svg("line", { x1: X(v), x2: X(v), y1: edge.top, y2: height - edge.bottom }),
      svg("text", { x: X(v), y: height - edge.bottom + 16, "text-anchor": "middle" }, short(v)));
  }
  for (const v of decades(low, high)) {
    grid.append(svg("line", { x1: edge.left, x2: width - edge.right, y1: Y(v), y2: Y(v) }),
      svg("text", { x: edge.left - 7, y: Y(v) + 4, "text-anchor": "end" }, short(v)));
  }
  grid.append(svg("text", { x: (edge.left + width - edge.right) / 2, y: height - 6, "text-anchor": "middle" }, "operations per byte moved"),
    svg("text", { transform: `translate(12 ${(height - edge.bottom) / 2}) rotate(-90)`, "text-anchor": "middle" }, "GFLOP/s"));
  const roofs = svg("g", { class: "roofs" });
  levels.forEach((level, n) => {
    const begin = Math.max(left, low / level.bandwidth), knee = peak / level.bandwidth;
    if (begin >= knee) return; // its slope is not in the picture
    const [x, y, u, v] = [X(begin), Y(begin * level.bandwidth), X(knee), Y(peak)];
    const turn = `translate(${x} ${y}) rotate(${(Math.atan2(v - y, u - x) * 180) / Math.PI})`;
    roofs.append(svg("path", { d: `M${x},${y} L${u},${v} H${X(right)}` }), // the last one's name is below it: the lowest two may be near
      svg("text", { transform: turn, x: 10, y: n < levels.length - 1 ? -5 : 14 }, `${level.name} ${level.bandwidth.toFixed(0)} GB/s`));
  });
  roofs.append(svg("text", { x: X(right) - 4, y: Y(peak) - 6, "text-anchor": "end" }, `${peak.toFixed(0)} GFLOP/s`));
  const radius = (d) => 4.5 + 24 * Math.sqrt(d.share);
  const dots = svg("g", { class: "dots" }, [...shown].reverse().map((d) => { // the most important last, on top
    const r = radius(d);
    const dot = svg("g", { class: "dot", "data-kernel": d.n, transform: `translate(${X(d.x).toFixed(1)} ${Y(d.y).toFixed(1)})`, onclick: () => choose(d.n, null, "roofline") },
      svg("circle", { r }));
    tip(dot, [d.k.name, `${d.y.toFixed(1)} GFLOP/s at ${d.x.toFixed(1)} operations per byte`, `${percentText(d.share)} of the time`, d.t.bound]);
    return dot;
  }));
  const discs = shown.map((d) => ({ d, x: X(d.x), y: Y(d.y), r: radius(d) }));
  discs.push({ x: X(right) - 40, y: Y(peak) - 30, r: 36 }); // the name of the upper roof
  const frame = { left: edge.left + 10, right: width - edge.right - 10, top: edge.top, bottom: height - edge.bottom - 8 };
  const labels = svg("g", { class: "labels" }, spread(discs.slice(0, Math.min(NAMED, shown.length)), discs, frame).map((p) => {
    const far = Math.hypot(p.u - p.x, p.v - p.y) > APART / 2;
    return svg("g", { class: "label", "data-kernel": p.d.n },
      far ? svg("line", { x1: p.x.toFixed(1), y1: p.y.toFixed(1), x2: p.u.toFixed(1), y2: p.v.toFixed(1) }) : "",
      svg("text", { x: p.u.toFixed(1), y: (p.v + 4).toFixed(1), "text-anchor": "middle" }, String(p.d.k.number)));
  }));
  byId("roofline").replaceChildren(svg("svg", { width, height, class: "chart", role: "img", "aria-label": "Roofline: rate over intensity of each kernel" }, grid, roofs, dots, labels));
  const silent = facts.kernels.length - shown.length;
  byId("roofline-note").textContent = "A dot's area is its part of the time; its number is the kernel's in the table."
    + (silent ? ` ${plural(silent, "kernel")} that only ${silent > 1 ? "move" : "moves"} data, or ${silent > 1 ? "are" : "is"} too short for the clock, ${silent > 1 ? "have" : "has"} no place here.` : "");
  markDots();
}

/** Returns the ends of both axes: the decades of the kernels, and of the lowest slope so far that it is seen. */
function extent(shown, peak, levels) {
  const knee = peak / Math.min(...levels.map((l) => l.bandwidth));
  const xs = [knee / 2, knee * 2, ...shown.map((d) => d.x)], ys = [peak / 4, peak, ...shown.map((d) => d.y)];
  return { left: Math.min(...xs) / 1.6, right: Math.max(...xs) * 1.6, low: Math.min(...ys) / 1.6, high: Math.max(...ys) * 1.5 };
}

/** Moves labels apart that lie on one another or on a disc of another kernel; returns the points with their labels' places, u and v. */
function spread(points, discs, frame) {
  const placed = points.map((p) => ({ ...p, u: p.x, v: p.y }));
  const away = (p, x, y, distance, part, angle) => {
    let [dx, dy] = [p.u - x, p.v - y];
    const now = Math.hypot(dx, dy);
    if (now >= distance) return;
    if (now < 0.01) [dx, dy] = [Math.cos(angle), Math.sin(angle)];
    const push = ((distance + 0.5 - now) * part) / Math.hypot(dx, dy);
    [p.u, p.v] = [p.u + dx * push, p.v + dy * push];
  };
  for (let turn = 0; turn < 150; turn++) {
    placed.forEach((p, n) => {
      for (const disc of discs) if (disc.d !== p.d) away(p, disc.x, disc.y, disc.r + APART / 2, 0.3, n);
      placed.forEach((q, m) => {
        if (m === n) return;
        const { u, v } = q;
        away(q, p.u, p.v, APART, 0.5, m);
        away(p, u, v, APART, 0.5, n);
      });
      p.u = Math.max(frame.left, Math.min(frame.right, p.u));
      p.v = Math.max(frame.top, Math.min(frame.bottom, p.v));
    });
  }
  return placed;
}

function markDots() {
  for (const dot of document.querySelectorAll(".dot, .label")) dot.classList.toggle("chosen", Number(dot.dataset.kernel) === chosen.kernel);
}
onChoice(markDots);

/** Shows what a kernel takes beside what it could not do without. */
function showLimits(k) {
  const t = k.timing;
  const rows = [["it takes", t.seconds, "now"], ...Object.entries(t.limits).map(([name, s]) => [name, s, "limit"])];
  const most = Math.max(...rows.map(([, s]) => s)) || 1;
  const figures = [["operations", `${countText(t.operations)}FLOP`.replace(/^(\d+)FLOP/, "$1 FLOP")], ["moved", bytesText(Math.round(t.bytes))],
    ["intensity", t.bytes ? `${(t.operations / t.bytes).toFixed(1)} FLOP/B` : "–"], ["code", bytesText(k.code)]];
  byId("limits").replaceChildren(
    html("h3", {}, "Why it takes as long as it does"),
    html("p", { class: "kernel-name" }, named(k.name)),
    html("p", {}, `${t.bound[0].toUpperCase()}${t.bound.slice(1)}.`),
    html("div", { class: "bars" }, rows.map(([name, s, cls]) => [html("span", {}, name),
      html("div", { class: `meter ${cls}`, style: `--part:${(s / most).toFixed(4)}` }), html("span", { class: "number" }, secondsText(s))])),
    html("dl", { class: "figures" }, figures.flatMap(([name, text]) => [html("dt", {}, name), html("dd", {}, text)])),
    html("p", { class: "note" }, "Arithmetic goes on while memory is read; what is read from different levels adds up."));
}
