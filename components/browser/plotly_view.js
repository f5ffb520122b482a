// One mount for each figure; every refresh goes through Plotly.react.
const RETRY_AFTER_MS = 5000;
const NARROW_PX = 600;
const LONGEST_WAIT = { timeout: 100 }; // ms, of a figure until the browser has time for it
const RELEASES = ["pointerup", "pointercancel", "blur"];
const touch = matchMedia("(pointer: coarse)").matches;
const CONFIG = {
  displaylogo: false,
  displayModeBar: touch ? false : "hover",
  modeBarButtons: [["resetScale2d", "toImage"]],
  toImageButtonOptions: { scale: 2 },
};
const ARRAYS = {
  i1: Int8Array, u1: Uint8Array, i2: Int16Array, u2: Uint16Array,
  i4: Int32Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array,
};

const views = new WeakMap(); // parent element -> view
let drawn = Promise.resolve(); // figures are drawn one after another
let loading = null;
let failedAt = -Infinity;

async function fetchPlotly(address) {
  // The server sends no lifetime for this file, so a plain <script> would be fetched for each
  // page load. The address carries Plotly's version: a cached copy is never out of date.
  const answer = await fetch(address, { cache: "force-cache" });
  if (!answer.ok) throw new Error(`${answer.status} for ${address}`);
  const source = URL.createObjectURL(await answer.blob());
  await new Promise((resolve, reject) => {
    const script = document.createElement("script");
    Object.assign(script, { src: source, onload: resolve, onerror: reject });
    document.head.append(script);
  });
  URL.revokeObjectURL(source);
  if (!window.Plotly) throw new Error("Plotly's script defines no Plotly");
}

function plotly(address) {
  if (window.Plotly) return Promise.resolve();
  if (!loading && performance.now() - failedAt < RETRY_AFTER_MS) {
    return Promise.reject(new Error("Plotly's script did not load a moment ago"));
  }
  loading ??= fetchPlotly(address).catch((error) => {
    loading = null;
    failedAt = performance.now();
    console.error(error);
    throw error;
  });
  return loading;
}

function unpack(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

function decode({ dtype, bdata, shape }) {
  const bytes = Uint8Array.from(atob(bdata), (char) => char.charCodeAt(0));
  const [rows, columns] = shape.split(",").map(Number);
  return { values: new ARRAYS[dtype](bytes.buffer), rows, columns };
}

// components/figures/arrays.py says what planes are.
function interleave({ planes }, z) {
  const { rows, columns } = decode(z);
  const filled = [];
  for (const plane of planes) {
    const source = decode(plane.bdata === undefined ? z : plane);
    const down = source.rows > 1 || rows === 1;
    const across = source.columns > 1 || columns === 1;
    const [factor, offset] = [filled[plane.times], filled[plane.plus]];
    filled.push(Array.from({ length: rows * columns }, (_, i) => {
      const row = down ? Math.floor(i / columns) : 0;
      let value = source.values[row * source.columns + (across ? i % columns : 0)];
      if (plane.words) return plane.words[value] ?? "";
      if (plane.tenths) value = 10 ** (value / 10);
      return value * (factor ? factor[i] : 1) + (offset ? offset[i] : 0);
    }));
  }
  return Array.from({ length: rows }, (_, row) => Array.from({ length: columns }, (_, column) =>
    filled.map((values) => values[row * columns + column])));
}

function merged(base, over) {
  const result = { ...base };
  for (const [key, value] of Object.entries(over)) {
    const inner = value && typeof value === "object" && !Array.isArray(value);
    result[key] = inner ? merged(base[key] ?? {}, value) : value;
  }
  return result;
}

function themed(layout, element) {
  const style = getComputedStyle(element);
  const css = (name) => style.getPropertyValue(`--st-${name}`).trim();
  const [text, back, line] = [css("text-color"), css("background-color"), css("border-color")];
  const font = { family: css("font"), color: text, size: 13 };
  const axis = {
    gridcolor: line, linecolor: line, zerolinecolor: line, tickcolor: line,
    title: { font: { size: 13 } },
  };
  const axes = Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key));
  const defaults = {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    uirevision: "kept",
    dragmode: touch ? false : "zoom", // a finger scrolls the page
    modebar: { bgcolor: "rgba(0,0,0,0)", color: line, activecolor: text },
    font,
    hoverlabel: { bgcolor: back, bordercolor: line, align: "left", font },
    ...Object.fromEntries(axes.map((name) => [name, axis])),
  };
  const narrow = (element.offsetWidth < NARROW_PX && layout.meta?.narrow) || {};
  return merged(merged(defaults, layout), { ...narrow, autosize: true });
}

function clicked({ points: [{ curveNumber, pointNumber, x, y }] }) {
  return { curve: curveNumber, x, y, point: [pointNumber].flat(), serial: Date.now() };
}

function mount(parent) {
  const figure = document.createElement("div");
  figure.setAttribute("role", "img");
  figure.setAttribute("aria-busy", "true");
  figure.style.width = "100%";
  const note = document.createElement("p");
  note.setAttribute("role", "alert");
  note.hidden = true;
  parent.append(note, figure);

  const view = { figure, note, turn: 0, shown: null, next: null, drawing: false, pressed: false };
  figure.addEventListener("pointerdown", (event) => {
    view.pressed = event.button === 0;
    hoverNow(figure, event);
  }, true);
  view.release = () => {
    if (!view.pressed) return;
    view.pressed = false;
    setTimeout(() => draw(view)); // after Plotly has made a click or a zoom of it
  };
  for (const name of RELEASES) window.addEventListener(name, view.release);
  figure.addEventListener("pointermove", ({ clientX, clientY, pointerType }) => {
    view.pointer = pointerType === "mouse" ? { clientX, clientY } : null;
  }, true);
  figure.addEventListener("pointerleave", () => { view.pointer = null; });
  view.resizer = new ResizeObserver(() => {
    if (!view.shown || !figure.offsetWidth || figure.offsetWidth === view.width) return;
    view.next ??= view.shown;
    draw(view);
  });
  view.resizer.observe(figure);
  return view;
}

function unmount(parent, view) {
  views.delete(parent);
  view.resizer.disconnect();
  for (const name of RELEASES) window.removeEventListener(name, view.release);
  window.Plotly?.purge(view.figure);
}

function move(target, { clientX, clientY }) {
  target.dispatchEvent(new MouseEvent("mousemove", { clientX, clientY, bubbles: true }));
}

function hoverAgain({ figure, pointer }) {
  if (!pointer) return;
  const under = document.elementFromPoint(pointer.clientX, pointer.clientY);
  if (figure.contains(under)) move(under, pointer);
}

// Plotly hovers every 50 ms at most, and a click reports what was hovered last: without this, a
// quick one reports the cell before.
function hoverNow(figure, event) {
  window.Plotly?.Fx.unhover(figure);
  move(event.target, event);
}

// Between two figures the browser shows the first, hears clicks, and takes in what has come: a newer
// figure may be there by then.
function myTurn() {
  const later = window.requestIdleCallback ?? setTimeout; // Safari has no idle callback
  drawn = drawn.then(() => new Promise((resolve) => later(resolve, LONGEST_WAIT)));
  return drawn;
}

async function draw(view) {
  if (view.drawing) return;
  view.drawing = true;
  const { figure } = view;
  try {
    await myTurn();
    while (view.next && !view.pressed) { // a redraw between press and release would lose the click
      view.shown = view.next;
      view.next = null;
      view.width = figure.offsetWidth;
      figure.setAttribute("aria-label", view.shown.label);
      const layout = themed({ ...view.shown.layout, width: view.width }, figure);
      figure.style.height = `${layout.height}px`;
      const done = Plotly.react(figure, view.shown.data, layout, CONFIG);
      if (figure.hasAttribute("aria-busy")) { // it is seen before it is done, and clicked
        figure.on("plotly_click", (event) => view.setStateValue("click", clicked(event)));
      }
      await done;
      figure.removeAttribute("aria-busy");
      hoverAgain(view);
      save(view);
    }
  } finally {
    view.drawing = false;
  }
}

function same(some, others) {
  return some?.length === others.length && some.every((byte, i) => byte === others[i]);
}

// A picture as a file, with the page's background; the first figure of a mount never asks for one.
function save({ figure, shown }) {
  const asked = shown.download?.serial ?? "";
  const known = figure.dataset.saved;
  figure.dataset.saved = asked;
  if (!asked || known === undefined || asked === known) return;
  const back = getComputedStyle(figure).getPropertyValue("--st-background-color").trim();
  const { width, height } = figure.getBoundingClientRect();
  const picture = { data: figure.data, layout: { ...figure.layout, paper_bgcolor: back } };
  const { format, name } = shown.download;
  const scale = format === "svg" ? 1 : 2;
  Plotly.downloadImage(picture, { format, filename: name, width, height, scale });
}

async function refresh(view, bytes, page) {
  const theme = getComputedStyle(view.figure).getPropertyValue("--st-text-color");
  if (same(view.bytes, bytes) && theme === view.theme) return; // a run that halted is sent as well
  Object.assign(view, { bytes, theme });
  view.turn += 1;
  const turn = view.turn;
  const job = await unpack(bytes);
  if (!view.shown) view.figure.style.height = `${job.layout.height}px`; // no jump at the first one
  for (const trace of job.data) {
    if (trace.customdata?.planes) trace.customdata = interleave(trace.customdata, trace.z);
  }
  let failed = false;
  await plotly(page.plotly).catch(() => { failed = true; });
  if (turn !== view.turn) return; // a newer figure has come meanwhile
  view.note.textContent = failed ? page.failed : "";
  view.note.hidden = !failed;
  if (failed) {
    view.bytes = null; // tried again at the next refresh
    return;
  }
  view.next = job;
  await draw(view);
}

export default function ({ parentElement, data, setStateValue }, page) {
  if (!data) { // no figure yet: only what all of them need
    plotly(page.plotly).catch(() => {});
    return;
  }
  const view = views.get(parentElement) ?? mount(parentElement);
  views.set(parentElement, view);
  view.setStateValue = setStateValue;
  refresh(view, data, page);
  // Streamlit also calls this when a refresh was overtaken by the next while still mounted.
  return () => { if (!parentElement.isConnected) unmount(parentElement, view); };
}
