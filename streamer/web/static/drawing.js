// Draws the timeline on its canvas. A view has the steps, the sizes and the colours.

import { placeOf } from "./history.js";
import { clock } from "./words.js";

const TICKS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
const TICK_PIXELS = 96;

const xOf = (view, step) => ((step - view.first) / view.steps) * view.width;

// The background of each row: a bar where steps are loaded, a thin line before them.
export function drawKnown(context, view, history, rows) {
  const from = Math.max(0, xOf(view, history.oldest));
  for (let row = 0; row < rows; row += 1) {
    const top = view.strip + (row + 1) * view.pitch - view.cell - 1;
    context.fillStyle = view.ink.unknown;
    context.fillRect(0, top + view.cell / 2, from, 1);
    context.fillStyle = view.ink.known;
    context.fillRect(from, top, view.width - from, view.cell);
  }
}

// The row of one item. Where steps are narrower than a pixel, each pixel shows their maximum.
export function drawRow(context, view, { steps, estimates }, row, least, most) {
  const top = view.strip + (row + 1) * view.pitch - view.cell - 1;
  const colour = (value) => view.ramp.colour(value, least, most);
  if (view.refresh > 1) drawPauses(context, view, { steps, estimates }, top, colour);
  for (const { x, width, value } of columns(view, steps, estimates)) {
    context.fillStyle = colour(value);
    context.fillRect(x, top, width, view.cell);
  }
}

// A reported item is not checked again for a while: its report stays valid until then.
function drawPauses(context, view, { steps, estimates }, top, colour) {
  context.globalAlpha = 0.7;
  for (let place = placeOf(steps, view.first - view.refresh); place < steps.length; place += 1) {
    const end = Math.min(steps[place] + view.refresh, steps[place + 1] ?? Infinity, view.through + 1);
    const x = Math.max(0, xOf(view, steps[place]));
    context.fillStyle = colour(estimates[place]);
    context.fillRect(x, top, xOf(view, end) - x, view.cell);
  }
  context.globalAlpha = 1;
}

// The number of items in each step, with those still valid from earlier steps. Returns the
// maximum.
export function drawStrip(context, view, { steps, counts }) {
  const bars = [...columns(view, steps, counts)];
  const most = bars.reduce((largest, { value }) => Math.max(largest, value), 0);
  const base = view.strip - 8;
  context.fillStyle = view.ink.line;
  context.fillRect(0, base, view.width, 1);
  context.fillStyle = view.ink.bar;
  for (const { x, width, value } of bars) {
    const height = Math.max(2, (value / most) * (base - view.stripTop));
    context.fillRect(x, base - height, width, height);
  }
  return most;
}

export function drawAxis(context, view, rows) {
  const top = view.strip + rows * view.pitch + 4;
  const span = (view.steps * view.lengthMs) / 1000;
  const wanted = (span * TICK_PIXELS) / view.width;
  const every = 1000 * (TICKS.find((seconds) => seconds >= wanted) ?? TICKS.at(-1));
  const from = view.startOf(view.first);
  const until = view.startOf(view.through + 1);
  const zone = new Date(from).getTimezoneOffset() * 60_000;
  context.textBaseline = "top";
  for (let at = Math.ceil((from - zone) / every) * every + zone; at <= until; at += every) {
    const x = ((at - from) / (until - from)) * view.width;
    context.fillStyle = view.ink.line;
    context.fillRect(Math.round(x), top - 4, 1, 5);
    const words = clock(at, { seconds: every < 60_000, day: span > 86_400 });
    const width = context.measureText(words).width;
    context.fillStyle = view.ink.ink;
    context.fillText(words, Math.min(view.width - width, Math.max(0, x - width / 2)), top + 3);
  }
}

// The steps of a view that have a value, as columns of whole pixels.
function* columns(view, steps, values) {
  const start = placeOf(steps, view.first);
  const width = view.width / view.steps;
  if (width >= 1) {
    const gap = width >= 6 ? 1 : 0;
    for (let place = start; place < steps.length; place += 1) {
      const x = Math.round(xOf(view, steps[place]));
      const next = Math.round(xOf(view, steps[place] + 1));
      yield { x, width: Math.max(1, next - x - gap), value: values[place] };
    }
    return;
  }
  const largest = new Float64Array(Math.ceil(view.width) + 1);
  for (let place = start; place < steps.length; place += 1) {
    const x = Math.floor(xOf(view, steps[place]));
    if (values[place] > largest[x]) largest[x] = values[place];
  }
  for (let x = 0; x < largest.length; x += 1) if (largest[x]) yield { x, width: 1, value: largest[x] };
}
