// Items over steps: bands while they are there, coloured by their last value, with a mark for each
// value, and the item count of each step above.

import { drawAxis, drawKnown, drawRow, drawStrip } from "./drawing.js";
import { Ramp } from "./ramp.js";
import { placeOf } from "./series.js";
import { clock, duration, interval, itemElement, make, number, plural } from "./words.js";

const WINDOWS = [60, 300, 1_440, 10_000];
const ROWS = 12;
const MOST_ROWS = 60;

const find = (id) => document.getElementById(id);

export class Timeline {
  #chosen = WINDOWS[1];
  #all = false;
  #rows = []; // the series that are shown, from top to bottom
  #labels = new Map(); // item -> its label
  #cursor = null; // {step, row}
  #due = false;
  #seconds = null;
  #current = new Map(); // item -> its last value, or null
  #least = 1;
  #counts = { steps: [], counts: [] };

  // `fetchBack(step)` loads the steps from `step` on into the history.
  constructor(history, fetchBack) {
    this.history = history;
    this.fetchBack = fetchBack;
    this.chart = find("chart");
    this.canvas = find("canvas");
    this.#makeWindows();
    this.#recolour();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#recolour());
    new ResizeObserver(() => this.#draw()).observe(this.chart);
    this.chart.addEventListener("pointermove", (event) => this.#point(event));
    this.chart.addEventListener("pointerdown", (event) => this.#point(event));
    this.chart.addEventListener("pointerleave", () => this.#moveTo(null));
    this.chart.addEventListener("keydown", (event) => this.#key(event));
    find("rows-more").addEventListener("click", () => {
      this.#all = !this.#all;
      this.#draw();
    });
  }

  show(promise, current) {
    if (promise && promise.step_seconds !== this.#seconds) {
      this.#seconds = promise.step_seconds;
      this.#labelWindows();
    }
    this.#least = promise?.threshold ?? 1;
    this.#current = new Map(current.hitters.map(({ item, value }) => [item, value]));
    this.#draw();
  }

  // How many steps are shown. The longest window covers all loaded steps.
  get #steps() {
    if (this.#chosen < WINDOWS.at(-1) || this.history.through === null) return this.#chosen;
    return Math.max(WINDOWS[0], Math.min(this.#chosen, this.history.through - this.history.oldest + 1));
  }

  // At most once per frame, however many publications arrive at once.
  #draw() {
    if (this.#due) return;
    this.#due = true;
    requestAnimationFrame(() => {
      this.#due = false;
      this.#drawNow();
    });
  }

  #drawNow() {
    const view = this.#view();
    const { rows, of, largest } = this.#chooseRows(view);
    this.#rows = rows;
    this.#showLabels();
    this.#moreButton(of);
    const height = view.strip + rows.length * view.pitch + view.axis;
    this.chart.style.height = `${height}px`;
    const context = this.#sized(view, height);
    if (view.through !== null) {
      drawKnown(context, view, this.history, rows.length);
      this.#counts = this.history.itemCounts(view.first);
      const most = drawStrip(context, view, this.#counts);
      find("strip-most").textContent = most ? `, up to ${number(most)}` : "";
      rows.forEach((series, row) => drawRow(context, view, series, row, this.#least, largest));
      drawAxis(context, view, rows.length);
      this.#legend(largest);
    }
    this.#drawCursor(context, view);
    this.#describe(view, of);
  }

  // All that drawing needs: the steps, the sizes and the colours.
  #view() {
    const style = getComputedStyle(this.chart);
    const size = (name) => parseFloat(style.getPropertyValue(name));
    const through = this.history.through;
    const lengthMs = 1000 * (this.#seconds ?? 1);
    return {
      through,
      first: through === null ? 0 : through - this.#steps + 1,
      steps: this.#steps,
      width: this.canvas.clientWidth,
      pitch: size("--pitch"),
      cell: size("--cell"),
      strip: size("--strip"),
      stripTop: size("--strip-top"),
      axis: size("--axis"),
      startOf: (step) => this.history.startOf(step, lengthMs),
      lengthMs,
      refresh: this.history.refresh,
      ramp: this.ramp,
      ink: this.ink,
    };
  }

  // The items with the highest peaks in this window, newest first: outbreaks start at the
  // top, and permanent items stay at the bottom.
  #chooseRows(view) {
    const found = [];
    for (const series of this.history.series.values()) {
      const last = series.stretches.length - 1;
      const end = series.stretches[last].gone === null ? series.endOf(last, view.refresh) : series.stretches[last].gone + 1;
      if (end > view.first) found.push({ series, peak: peakOf(series, view) });
    }
    found.sort((one, other) => other.peak - one.peak);
    const largest = Math.max(found[0]?.peak ?? 0, 2 * this.#least);
    const rows = found.slice(0, this.#all ? MOST_ROWS : ROWS).map(({ series }) => series);
    rows.sort((one, other) => firstOf(other) - firstOf(one) || (one.item < other.item ? -1 : 1));
    return { rows, of: found.length, largest };
  }

  #showLabels() {
    const labels = this.#rows.map((series) => {
      const { item } = series;
      if (!this.#labels.has(item)) {
        const label = make("li");
        label.append(itemElement(item), make("span", "latest"));
        this.#labels.set(item, label);
      }
      const label = this.#labels.get(item);
      label.classList.toggle("gone", !this.#current.has(item));
      label.lastChild.textContent = this.#latest(series);
      return label;
    });
    const list = find("labels");
    const isSame = list.children.length === labels.length && labels.every((label, row) => list.children[row] === label);
    if (!isSame) list.replaceChildren(...labels);
    if (this.#labels.size > 4 * MOST_ROWS) {
      this.#labels = new Map(this.#rows.map(({ item }, row) => [item, labels[row]]));
    }
  }

  #latest({ item, stretches }) {
    if (!this.#current.has(item)) return stretches.at(-1).gone === null ? "" : "gone";
    const value = this.#current.get(item);
    return value === null ? "" : number(value.estimate);
  }

  #moreButton(of) {
    const button = find("rows-more");
    button.hidden = of <= ROWS;
    const others = Math.min(of, MOST_ROWS) - ROWS;
    button.textContent = this.#all ? `Show only ${ROWS} items` : `Show ${plural(others, "more item")}`;
  }

  #sized(view, height) {
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(view.width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = this.font;
    return context;
  }

  #recolour() {
    this.ramp = new Ramp();
    this.ramp.paint(find("legend-ramp"));
    const style = getComputedStyle(document.documentElement);
    this.ink = Object.fromEntries(
      ["known", "unknown", "line", "soft", "bar", "ink"].map((name) => [name, style.getPropertyValue(`--chart-${name}`)]),
    );
    this.font = `11px ${style.getPropertyValue("--sans")}`;
    this.#draw();
  }

  #legend(largest) {
    find("legend-least").textContent = `${number(this.#least)} users`;
    find("legend-most").textContent = number(largest);
  }

  #describe(view, of) {
    const known = view.through === null ? 0 : Math.min(this.#steps, view.through - this.history.oldest + 1);
    this.chart.setAttribute("aria-label", `Heat map of ${plural(of, "item")} over ${plural(known, "step")}`);
    this.chart.dataset.steps = known;
    this.chart.dataset.items = of;
  }

  #makeWindows() {
    for (const steps of WINDOWS) {
      const label = make("label");
      const choice = make("input");
      Object.assign(choice, { type: "radio", name: "window", value: steps, checked: steps === this.#chosen });
      choice.addEventListener("change", () => this.#choose(steps));
      label.append(choice, make("span", "", number(steps)));
      find("windows").append(label);
    }
  }

  #labelWindows() {
    find("windows").querySelectorAll("label").forEach((label, place) => {
      const isLongest = place === WINDOWS.length - 1;
      label.lastChild.textContent = isLongest ? "All" : duration(WINDOWS[place] * this.#seconds);
      label.title = `the last ${plural(WINDOWS[place], "step")}`;
    });
  }

  async #choose(steps) {
    this.#chosen = steps;
    this.#draw();
    if (this.history.through === null) return;
    const first = this.history.through - steps + 1;
    if (first >= this.history.oldest) return;
    try {
      await this.fetchBack(first);
    } catch {
      return; // the connection is lost; choosing again retries
    }
    this.#draw();
  }

  #point(event) {
    const view = this.#view();
    if (view.through === null) return;
    const box = this.canvas.getBoundingClientRect();
    const across = Math.floor(((event.clientX - box.left) / view.width) * view.steps);
    const down = Math.floor((event.clientY - box.top - view.strip) / view.pitch);
    const isInside = across >= 0 && across < view.steps;
    this.#moveTo(isInside ? { step: view.first + across, row: down } : null);
  }

  #key(event) {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const view = this.#view();
    if (view.through === null) return;
    const cursor = this.#cursor ?? { step: view.through + 1, row: 0 };
    let { step, row } = cursor;
    if (event.key in moves) {
      step += moves[event.key][0] * (event.shiftKey ? 10 : 1);
      row += moves[event.key][1];
    } else if (event.key === "Home") step = view.first;
    else if (event.key === "End") step = view.through;
    else if (event.key === "Escape") {
      this.#moveTo(null);
      return;
    } else return;
    event.preventDefault();
    const oldest = Math.max(view.first, this.history.oldest);
    this.#moveTo({
      step: Math.min(view.through, Math.max(oldest, step)),
      row: Math.min(this.#rows.length - 1, Math.max(0, row)),
    });
  }

  #moveTo(cursor) {
    this.#cursor = cursor;
    const words = this.#read(cursor);
    find("readout").replaceChildren(...words);
    this.#draw();
  }

  #drawCursor(context, view) {
    if (!this.#cursor || this.#cursor.step < view.first) return;
    const { step, row } = this.#cursor;
    const width = Math.max(1, view.width / view.steps);
    const x = ((step - view.first) / view.steps) * view.width;
    context.fillStyle = view.ink.soft;
    context.fillRect(x, 0, width, view.strip + this.#rows.length * view.pitch);
    if (row < 0 || row >= this.#rows.length) return;
    context.strokeStyle = view.ink.ink;
    context.lineWidth = 1.5;
    const top = view.strip + (row + 1) * view.pitch - view.cell - 1;
    context.strokeRect(x - 1, top - 1, width + 2, view.cell + 2);
  }

  #read(cursor) {
    if (!cursor) return ["Point at the chart or use the arrow keys to read a value."];
    const { step, row } = cursor;
    if (this.history.oldest === null || step < this.history.oldest) return ["No data: this step is older than the loaded history."];
    const seconds = this.#seconds < 60;
    const moment = this.history.startOf(step, 1000 * this.#seconds);
    const when = clock(moment, { seconds, day: this.#steps * this.#seconds > 86_400 });
    const series = this.#rows[row];
    if (!series) return [`${when} \u00b7 ${plural(this.#countAt(step), "item")}`];
    const words = describe(this.history.at(series.item, step), step);
    return [`${when} \u00b7 `, itemElement(series.item), ` \u00b7 ${words}`];
  }

  #countAt(step) {
    const { steps, counts } = this.#counts;
    const place = placeOf(steps, step);
    return steps[place] === step ? counts[place] : 0;
  }
}

const firstOf = ({ stretches }) => stretches[0].first;

// The largest value in a view, including the one that is valid when it begins.
function peakOf(series, { first, refresh }) {
  let peak = series.at(first, refresh)?.value?.estimate ?? 0;
  for (let place = placeOf(series.steps, first); place < series.steps.length; place += 1) {
    peak = Math.max(peak, series.estimates[place]);
  }
  return peak;
}

// What is known about an item in a step, in words.
function describe(found, step) {
  if (found === null) return "not shown, so not known";
  const { state, value } = found;
  if (state === "gone") return "gone";
  if (value === null) return "there; its last value is older than what is loaded";
  const ago = step - value.step;
  const measured = ago ? `, measured ${plural(ago, "step")} earlier` : "";
  return `${state ? `${state}, ` : ""}about ${plural(value.estimate, "user")} (95% interval: ${interval(value)})${measured}`;
}
