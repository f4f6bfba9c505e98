// Figures and code for people.

/** Writes a number of bytes in units of 1024, as the commands do. */
function bytesText(n) {
  for (const unit of ["B", "KiB", "MiB"]) {
    if (n < 1024) return unit === "B" ? `${n} B` : `${n < 100 ? n.toFixed(1) : Math.round(n)} ${unit}`;
    n /= 1024;
  }
  return `${n.toFixed(2)} GiB`;
}

function secondsText(s) {
  if (s >= 1) return `${s.toFixed(s < 10 ? 2 : 1)} s`;
  if (s >= 1e-3) return `${(s * 1e3).toFixed(s < 0.01 ? 2 : s < 0.1 ? 1 : 0)} ms`;
  return `${(s * 1e6).toFixed(s < 1e-5 ? 2 : s < 1e-4 ? 1 : 0)} µs`;
}

/** Writes a number with a prefix of a thousand: 1.82 G. */
function countText(n) {
  for (const [size, unit] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
    if (n >= size) return `${(n / size).toFixed(n / size < 10 ? 2 : n / size < 100 ? 1 : 0)}${unit}`;
  }
  return n < 10 && n % 1 ? n.toFixed(2) : String(Math.round(n));
}

function percentText(x) {
  return x >= 0.0995 || x === 0 ? `${Math.round(x * 100)}%` : x < 0.001 ? "<0.1%" : `${(x * 100).toFixed(1)}%`;
}

/** Returns a name as a text that may be broken after each underscore. */
function named(name) {
  return name.split(/(?<=_)/).flatMap((part, n) => (n ? [html("wbr"), part] : [part]));
}

function plural(n, word) {
  return `${n} ${word}${n === 1 ? "" : "s"}`;
}

const total = facts.kernels.reduce((sum, k) => sum + (k.timing ? k.timing.seconds * k.calls : 0), 0);
const timed = facts.roofs !== null;

/** Returns which part of the model's time all calls of a kernel take, or one of them. */
function shareOf(kernel, calls = kernel.calls) {
  return kernel.timing && total ? (kernel.timing.seconds * calls) / total : 0;
}

const TOKENS = new RegExp([
  /(?<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')/,
  /(?<note>#.*)/,
  /(?<word>\b(?:def|for|in|with|if|elif|else|while|as|and|or|not|pass)\b)/,
  /(?<loop>\b(?:range|parallel|vectorized|unrolled|bound)(?=\())/,
  /(?<made>\b(?:block|alloc|view|let|init|reads|writes|annotate|spatial|reduce|ordered|opaque|check|call)(?=\())/,
  /(?<step>(?<=\bs\.)\w+)/,
  /(?<number>\b\d+(?:\.\d+)?(?:e[-+]?\d+)?\b)/,
].map((r) => r.source).join("|"), "g");

/** Returns a line of code as texts and coloured spans. */
function coloured(line) {
  const made = [];
  let end = 0;
  for (const match of line.matchAll(TOKENS)) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    if (match.index > end) made.push(line.slice(end, match.index));
    made.push(html("span", { class: kind === "loop" ? `t-loop t-${match[0]}` : `t-${kind}` }, match[0]));
    end = match.index + match[0].length;
  }
  return [...made, line.slice(end)];
}
