// Graphs in panes: drawn once, moved by dragging, enlarged by the wheel, two fingers or buttons.

const LEAST_ZOOM = 0.04, MOST_ZOOM = 2.5, READABLE = 0.8;
const LEGIBLE = 0.5, MARGIN = 14; // below this zoom a graph that is too wide is rather cut off than shrunk; pixels around it
const DRAG = 4; // pixels from which on a press is no click

/** A pane that shows one of several graphs; *names* gives the title of each, by its key among the facts. */
class Pane {
  constructor(place, names, first) {
    this.views = {};
    this.scene = svg("g");
    this.surface = svg("svg", { class: "surface", tabindex: 0, role: "img" }, arrowhead(), this.scene);
    this.search = html("input", { type: "search", placeholder: "Find", "aria-label": "Find a box", oninput: () => this.find(0) });
    this.search.addEventListener("keydown", (e) => { if (e.key === "Enter") this.find(e.shiftKey ? -1 : 1); });
    const tabs = html("div", { class: "tabs", role: "tablist" });
    const zoom = html("div", { class: "zoom" },
      this.button("+", "Larger", () => this.zoom(1.3)),
      this.button("−", "Smaller", () => this.zoom(1 / 1.3)),
      this.button("⤢", "All of it", () => this.fit()));
    place.append(html("div", { class: "tools" }, tabs, this.search, zoom), html("div", { class: "stage" }, this.surface));
    this.stage = this.surface.parentElement;
    this.press = switcher(tabs, names, (key) => this.show(key));
    this.listen();
    this.press(first);
    let known = 0; // a pane that was hidden has no size when it is first shown
    new ResizeObserver(() => {
      const { width } = this.size();
      if (width && !known) this.begin();
      known = width || known;
    }).observe(this.stage);
  }

  button(text, title, onclick) {
    return html("button", { type: "button", class: "button", title, "aria-label": title, onclick }, text);
  }

  size() {
    return this.stage.getBoundingClientRect();
  }

  show(key) {
    this.key = key;
    this.drawing = facts.graphs[key];
    this.views[key] ??= draw(this.drawing, key, (n) => this.pick(n));
    this.scene.replaceChildren(this.views[key]);
    this.surface.setAttribute("aria-label", `${this.drawing.boxes.length} boxes; arrow keys go from one to the next`);
    this.begin();
    this.mark();
  }

  /** Shows the chosen box, else the first, and what is around it: as large as the width allows, nothing cut off at the sides. */
  begin() {
    const { width, height } = this.size(), { boxes, width: w, height: h } = this.drawing;
    const n = Math.max(0, boxes.findIndex((b) => b.calls.some((c) => chosen.calls.includes(c))));
    let k = 1, top = 0, left = 0, right = w;
    for (let turn = 0; turn < 6 && boxes.length; turn++) { // a smaller picture shows more of the graph, which may be wider
      const most = h + MARGIN / k - height / k;
      top = Math.max(-MARGIN / k, Math.min(most, boxes[n].y + boxes[n].h / 2 - height / k / 2));
      const seen = boxes.filter((b) => b.y + b.h > top && b.y < top + height / k);
      left = Math.min(...seen.map((b) => b.x));
      right = Math.max(...seen.map((b) => b.x + b.w));
      const fits = Math.max(LEAST_ZOOM, (width - 2 * MARGIN) / (right - left));
      if (fits >= k) break;
      k = fits;
    }
    if (k < LEGIBLE) { // it is too wide: its middle part, about the box
      k = LEGIBLE;
      top = boxes[n].y + boxes[n].h / 2 - height / k / 2;
      left = right = boxes[n].x + boxes[n].w / 2;
    }
    this.at = { k, x: width / 2 - ((left + right) / 2) * k, y: -top * k };
    this.move();
  }

  fit() {
    const { width, height } = this.size(), { width: w, height: h } = this.drawing;
    const k = Math.max(LEAST_ZOOM, Math.min(1, (width - 24) / w, (height - 24) / h));
    this.at = { k, x: (width - w * k) / 2, y: (height - h * k) / 2 };
    this.move();
  }

  zoom(factor, at = null) {
    const { width, height } = this.size();
    const x = at ? at.x : width / 2, y = at ? at.y : height / 2;
    const k = Math.max(LEAST_ZOOM, Math.min(MOST_ZOOM, this.at.k * factor));
    this.at = { k, x: x - ((x - this.at.x) * k) / this.at.k, y: y - ((y - this.at.y) * k) / this.at.k };
    this.move();
  }

  /** Brings a box to the middle, unless it is in sight. */
  reach(n) {
    const { width, height } = this.size(), b = this.drawing.boxes[n];
    const x = (b.x + b.w / 2) * this.at.k + this.at.x, y = (b.y + b.h / 2) * this.at.k + this.at.y;
    if (this.at.k >= READABLE && x > 60 && x < width - 60 && y > 40 && y < height - 40) return;
    const k = Math.max(READABLE, this.at.k);
    this.at = { k, x: width / 2 - (b.x + b.w / 2) * k, y: height / 2 - (b.y + b.h / 2) * k };
    this.move();
  }

  move() {
    const { x, y, k } = this.at;
    this.scene.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)}) scale(${k.toFixed(4)})`);
  }

  /** Chooses a box: the calls that compute it, and its facts. */
  pick(n) {
    this.picked = n;
    const box = this.drawing.boxes[n];
    showDetails(box);
    const calls = box.calls.length ? box.calls : box.into;
    if (calls.length) choose(facts.calls[calls[0]].kernel, calls, this.key);
    else choose(-1, [], this.key);
  }

  /** Marks the boxes of the chosen calls, and fainter those of other calls of the same kernel. */
  mark() {
    const boxes = this.drawing.boxes;
    [...this.views[this.key].querySelectorAll(".box")].forEach((g, n) => {
      const own = boxes[n].calls.some((c) => chosen.calls.includes(c)) || this.picked === n;
      const akin = boxes[n].calls.some((c) => facts.calls[c].kernel === chosen.kernel);
      g.classList.toggle("chosen", own);
      g.classList.toggle("akin", akin && !own);
    });
  }

  follow(from) {
    if (from !== this.key) this.picked = -1;
    this.mark();
    if (from === this.key || !chosen.calls.length) return;
    const n = this.drawing.boxes.findIndex((b) => b.calls.some((c) => chosen.calls.includes(c)));
    if (n >= 0) this.reach(n);
  }

  /** Goes to the next box that has the text that is looked for; *step* 0 begins anew. */
  find(step) {
    const text = this.search.value.trim().toLowerCase();
    const has = (b) => [b.title, b.note, ...b.facts.flat()].some((t) => t.toLowerCase().includes(text));
    const found = text ? this.drawing.boxes.flatMap((b, n) => (has(b) ? [n] : [])) : [];
    this.search.classList.toggle("nothing", Boolean(text) && !found.length);
    if (!found.length) return;
    this.place = step ? (this.place + step + found.length) % found.length : 0;
    this.pick(found[this.place]);
    this.reach(found[this.place]);
  }

  listen() {
    const pointers = new Map();
    let moved = 0, active = false;
    const local = (e) => { const r = this.size(); return { x: e.clientX - r.left, y: e.clientY - r.top }; };
    this.surface.addEventListener("pointerdown", (e) => {
      if (e.button) return;
      if (!pointers.size) moved = 0;
      active = true;
      pointers.set(e.pointerId, local(e));
    });
    this.surface.addEventListener("pointermove", (e) => {
      const last = pointers.get(e.pointerId);
      if (!last) return;
      const now = local(e), other = [...pointers].find(([id]) => id !== e.pointerId)?.[1];
      moved += Math.hypot(now.x - last.x, now.y - last.y);
      if (moved > DRAG) this.surface.setPointerCapture(e.pointerId);
      pointers.set(e.pointerId, now);
      if (other) {
        this.zoom(Math.hypot(now.x - other.x, now.y - other.y) / (Math.hypot(last.x - other.x, last.y - other.y) || 1),
          { x: (now.x + other.x) / 2, y: (now.y + other.y) / 2 });
      } else if (moved > DRAG) {
        this.at.x += now.x - last.x;
        this.at.y += now.y - last.y;
        this.move();
      }
    });
    const end = (e) => pointers.delete(e.pointerId);
    this.surface.addEventListener("pointerup", end);
    this.surface.addEventListener("pointercancel", end);
    this.stage.addEventListener("pointerleave", () => { active = false; });
    this.surface.addEventListener("click", (e) => { if (moved > DRAG) e.stopPropagation(); }, true);
    this.surface.addEventListener("wheel", (e) => { // the page scrolls past a graph that nobody has touched
      if (!active && !e.ctrlKey && !e.metaKey) return;
      e.preventDefault();
      this.zoom(Math.exp(-e.deltaY * (e.deltaMode ? 0.05 : 0.0016)), local(e));
    }, { passive: false });
    this.surface.addEventListener("keydown", (e) => this.key_(e));
  }

  key_(e) {
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[e.key];
    if (step) {
      const last = this.drawing.boxes.length - 1, now = this.picked ?? -1;
      const next = Math.max(0, Math.min(last, now < 0 ? (step > 0 ? 0 : last) : now + step));
      this.pick(next);
      this.reach(next);
    } else if (e.key === "+" || e.key === "-") this.zoom(e.key === "+" ? 1.3 : 1 / 1.3);
    else if (e.key === "0") this.fit();
    else return;
    e.preventDefault();
  }
}

function arrowhead() {
  return svg("defs", {}, svg("marker", { id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" },
    svg("path", { d: "M0 0.8 L7.4 4 L0 7.2 z", class: "head" })));
}

/** The part of the time that the longest call takes. */
const mostOfOne = Math.max(1e-9, ...facts.kernels.map((k) => shareOf(k, 1)));

/** Returns the picture of a graph. */
function draw(drawing, key, onpick) {
  const edges = drawing.arrows.map((a) => {
    const path = svg("path", { d: curve(a.points), class: a.inside ? "edge inside" : "edge", "marker-end": "url(#head)" });
    const [u, v] = a.ends.map((n) => drawing.boxes[n].title);
    tip(path, [a.note, `${u} → ${v}`, a.inside ? "stays in registers or caches: one kernel has both ends" : ""]);
    return path;
  });
  const boxes = drawing.boxes.map((b, n) => {
    const pill = b.kind === "input" || b.kind === "output";
    const g = svg("g", { class: `box k-${b.kind}`, transform: `translate(${b.x} ${b.y})`, "data-box": n, onclick: () => onpick(n) },
      svg("rect", { class: "body", width: b.w, height: b.h, rx: pill ? b.h / 2 : 7 }));
    if (pill) {
      g.append(svg("text", { x: b.w / 2, y: 18, "text-anchor": "middle", class: "pill" }, `${b.title}  `, svg("tspan", { class: "soft" }, b.note)));
      return g;
    }
    g.append(svg("path", { class: "stripe", d: `M7 0.5 H5 V${b.h - 0.5} H7 a6.5 6.5 0 0 1 -6.5 -6.5 V7 a6.5 6.5 0 0 1 6.5 -6.5 z` }),
      svg("text", { x: 15, y: 19, class: "title" }, b.title), svg("text", { x: 15, y: 35, class: "soft" }, b.note));
    if (key === "calls" && timed) {
      const share = shareOf(facts.kernels[facts.calls[b.calls[0]].kernel], 1);
      g.append(svg("rect", { class: "heat", x: 15, y: b.h - 4.5, rx: 1, height: 2.5, width: Math.max(1, (b.w - 25) * (share / mostOfOne)) }),
        svg("text", { x: b.w - 10, y: 35, "text-anchor": "end", class: "soft strong" }, percentText(share)));
    }
    return g;
  });
  return svg("g", {}, svg("g", {}, edges), svg("g", {}, boxes));
}

/** Returns a path through points: straight where they are in line, else bent so that it leaves and enters vertically. */
function curve(points) {
  let d = `M${points[0]}`;
  for (let n = 1; n < points.length; n++) {
    const [x, y] = points[n], [u, v] = points[n - 1], middle = (y + v) / 2;
    d += x === u ? `V${y}` : `C${u},${middle} ${x},${middle} ${x},${y}`;
  }
  return d;
}

/** Shows the facts of a box, and the kernels that compute it. */
function showDetails(box) {
  const pill = box.kind === "input" || box.kind === "output";
  const calls = box.calls.length ? box.calls : box.into;
  const kernels = [...new Set(calls.map((c) => facts.calls[c].kernel))];
  const links = kernels.map((k) => kernelLink(k, calls.filter((c) => facts.calls[c].kernel === k)));
  const none = "It has no kernel of its own: it was merged into another node, computed while compiling, or is only another name of its input.";
  const does = box.calls.length ? "Computed by" : pill ? "Read by" : "Goes into";
  byId("details").replaceChildren(
    html("div", { class: `kind k-${box.kind}` }, box.kind),
    html("h3", {}, named(box.title)),
    html("dl", {}, box.facts.flatMap(([name, text]) => [html("dt", {}, name), html("dd", {}, text)])),
    pill || box.calls.length ? "" : html("p", { class: "note aside" }, none),
    links.length ? html("h4", {}, `${does} the kernel${links.length > 1 ? "s" : ""}`) : "", ...links);
}

/** Returns a button that leads to the loops of a kernel. */
function kernelLink(k, calls) {
  const kernel = facts.kernels[k];
  const where = calls.length > 3 ? plural(calls.length, "call") : `call ${calls.join(", ")}`;
  const time = kernel.timing ? ` · ${secondsText(kernel.timing.seconds)} · ${percentText(shareOf(kernel, calls.length))} of all` : "";
  return html("button", { type: "button", class: "kernel-link", onclick: () => { choose(k, calls, "details"); byId("loops").scrollIntoView(); } },
    html("b", {}, named(kernel.name)), html("span", {}, `${where}${time}`), html("i", {}, "its loops ↓"));
}

function showGraphs() {
  const g = facts.graphs, count = (key) => g[key].boxes.filter((b) => b.kind !== "input" && b.kind !== "output").length;
  const before = new Pane(byId("before"), {
    model: `Model ${count("model")}`, optimized: `After passes ${count("optimized")}`, calls: `Kernels ${count("calls")}`,
  }, "model");
  const after = new Pane(byId("after"), { calls: `Calls of kernels ${count("calls")}` }, "calls");
  for (const pane of [before, after]) onChoice((from) => pane.follow(from));
  const wide = matchMedia("(min-width: 900px)"); // one pane shows all graphs where there is no room for two
  wide.addEventListener("change", () => { if (wide.matches && before.key === "calls") before.press("model"); });
  const kinds = { contraction: "sums of products", reduction: "other reductions", elementwise: "element by element", movement: "moves data", other: "other" };
  const used = new Set(Object.values(g).flatMap((d) => d.boxes.map((b) => b.kind)));
  byId("kinds").append(...Object.entries(kinds).filter(([k]) => used.has(k)).map(([k, text]) =>
    html("span", { class: `kind k-${k}` }, text)),
    html("span", { class: "hint" }, "Drag to move; the wheel zooms after a click, or with Ctrl; arrow keys go from box to box."));
  return { before, after };
}
