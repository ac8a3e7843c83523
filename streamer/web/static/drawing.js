// Draws the timeline on its canvas. A view has the steps, the sizes and the colours.

import { placeOf } from "./series.js";
import { clock } from "./words.js";

const TICKS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800];
const TICK_PIXELS = 96;
const MARK_PIXELS = 2; // the least width of a value
const BAND_INSET = 0.3; // of the height of a mark, above and below the band

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

// The row of one item: a band while it is there, a mark for each value, a line where it is gone.
// Where steps are narrower than a pixel, each pixel shows the maximum of their values.
export function drawRow(context, view, series, row, least, most) {
  const top = view.strip + (row + 1) * view.pitch - view.cell - 1;
  const colour = (value) => (value === null ? view.ink.bar : view.ramp.colour(value, least, most));
  const inset = Math.round(view.cell * BAND_INSET);
  for (const { from, to, estimate } of series.bands(view.first, view.refresh)) {
    if (to - from === 1 && estimate !== null) continue; // its mark covers it
    const x = Math.max(0, xOf(view, from));
    context.fillStyle = colour(estimate);
    context.fillRect(x, top + inset, xOf(view, Math.min(to, view.through + 1)) - x, view.cell - 2 * inset);
  }
  for (const { x, width, value } of columns(view, series.steps, series.estimates)) {
    context.fillStyle = colour(value);
    context.fillRect(x, top, Math.max(width, MARK_PIXELS), view.cell);
  }
  context.fillStyle = view.ink.ink;
  for (const { gone } of series.stretches) {
    if (gone !== null && gone >= view.first) context.fillRect(Math.round(xOf(view, gone)), top, 1, view.cell);
  }
}

// The number of items in each step. Returns the maximum.
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
