// Making elements, and what all parts of the page share: the facts, what is chosen, and the note beside the pointer.

const facts = JSON.parse(document.getElementById("facts").textContent.replaceAll("\t", "    ")); // a tab stands for four spaces
const byId = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

/** Returns an element of the page; attributes that begin with "on" are listeners, children are elements or texts. */
function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Returns an element of a picture. */
function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== ""));
  return element;
}

/** What is chosen: calls by number, and the kernel that they call. Parts of the page listen. */
const chosen = { kernel: 0, calls: [], listeners: [] };

function onChoice(listener) {
  chosen.listeners.push(listener);
}

/** Chooses a kernel and all of its calls, or only those that are given; *from* is the part of the page that asked. */
function choose(kernel, calls = null, from = "") {
  chosen.kernel = kernel;
  chosen.calls = calls ?? facts.calls.flatMap((c, n) => (c.kernel === kernel ? [n] : []));
  for (const listener of chosen.listeners) listener(from);
}

/** Shows lines beside the pointer while it is over an element. */
function tip(element, lines) {
  const box = byId("tip");
  const move = (event) => {
    const { innerWidth: w, innerHeight: h } = window;
    const x = event.clientX + 14, y = event.clientY + 16;
    box.style.left = `${Math.max(8, Math.min(x, w - box.offsetWidth - 8))}px`;
    box.style.top = `${y + box.offsetHeight + 8 > h ? event.clientY - box.offsetHeight - 10 : y}px`;
  };
  element.addEventListener("pointerenter", (event) => {
    if (event.pointerType === "touch") return;
    const [first, ...rest] = typeof lines === "function" ? lines() : lines;
    box.replaceChildren(html("b", {}, first), ...rest.filter(Boolean).map((line) => html("div", {}, line)));
    box.hidden = false;
    move(event);
  });
  element.addEventListener("pointermove", move);
  element.addEventListener("pointerleave", () => { box.hidden = true; });
}

/** Draws at once, and again whenever the element's width changes. */
function drawInto(element, draw) {
  let width = 0;
  const redraw = () => {
    const now = element.clientWidth;
    if (now && now !== width) {
      width = now;
      draw(now);
    }
  };
  new ResizeObserver(redraw).observe(element);
  redraw();
}

/** A row of buttons of which one is pressed; returns a function that presses one. */
function switcher(parent, names, onPress) {
  const buttons = Object.entries(names).map(([key, text]) =>
    html("button", { type: "button", role: "tab", "data-key": key, onclick: () => press(key) }, text));
  function press(key) {
    for (const b of buttons) b.setAttribute("aria-selected", String(b.dataset.key === key));
    onPress(key);
  }
  parent.append(...buttons);
  return press;
}
