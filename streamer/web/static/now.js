// The list of items that are trending now.

import { duration, interval, itemElement, make, number, plural } from "./words.js";
import { placeOf } from "./history.js";

const SHOWN = 12;
const SPARK_STEPS = 60;
const SPARK = { width: 132, height: 30 };
const SVG = "http://www.w3.org/2000/svg";
const ARROWS = { new: "\u25cf", growing: "\u2191", steady: "\u2192", shrinking: "\u2193" };
const ANNOUNCE_MS = 10_000;

const find = (id) => document.getElementById(id);

export class Now {
  #rows = new Map(); // item -> the elements of its row
  #order = [];
  #all = false;
  #announced = null;
  #announcedAt = 0;
  #last = null;

  constructor(history) {
    this.history = history;
    find("now-more").addEventListener("click", () => {
      this.#all = !this.#all;
      this.show(...this.#last);
    });
  }

  show(current, promise) {
    this.#last = [current, promise];
    const hitters = stableOrder(current.hitters, this.#order);
    this.#order = hitters.map((hitter) => hitter.item);
    const shown = this.#all ? hitters : hitters.slice(0, SHOWN);
    const most = Math.max(...hitters.map(({ estimate, high }) => Math.max(estimate, high)), 1);
    const scale = { most, refresh: promise?.refresh_steps ?? 1, seconds: promise?.step_seconds ?? null };
    this.#place(shown.map((hitter) => this.#row(hitter, current.step, scale)));
    this.#showNotes(current, promise, hitters.length, shown.length);
    if (current.step !== null) this.#announce(hitters);
  }

  #row(hitter, step, scale) {
    let row = this.#rows.get(hitter.item);
    if (!row) {
      row = makeRow(hitter.item);
      this.#rows.set(hitter.item, row);
    }
    fillRow(row, hitter, step, scale);
    drawSpark(row.spark, this.history.series.get(hitter.item), step, scale.refresh);
    return row;
  }

  #place(rows) {
    const list = find("now-list");
    rows.forEach((row, place) => {
      if (list.children[place] !== row.element) list.insertBefore(row.element, list.children[place] ?? null);
    });
    while (list.children.length > rows.length) list.lastChild.remove();
    const kept = new Set(rows.map((row) => row.item));
    for (const item of this.#rows.keys()) if (!kept.has(item)) this.#rows.delete(item);
  }

  #showNotes(current, promise, count, shown) {
    const empty = find("now-empty");
    empty.hidden = count > 0;
    empty.textContent = current.step === null
      ? "Waiting for the first step to close."
      : "No item has enough users to be shown.";
    const more = find("now-more");
    more.hidden = count <= SHOWN;
    more.textContent = this.#all ? `Show only the top ${SHOWN}` : `Show ${number(count - shown)} more`;
    find("now-keys").hidden = !promise || count === 0;
  }

  // Screen readers announce items that appear and disappear, not every new number.
  #announce(hitters) {
    const items = new Set(hitters.map((hitter) => hitter.item));
    const before = this.#announced;
    if (before && Date.now() - this.#announcedAt < ANNOUNCE_MS) return;
    if (before) {
      const came = [...items].filter((item) => !before.has(item));
      const went = [...before].filter((item) => !items.has(item));
      if (!came.length && !went.length) return;
      const news = [];
      if (came.length) news.push(`${plural(came.length, "new item")}`);
      if (went.length) news.push(`${plural(went.length, "item")} gone`);
      find("announcer").textContent = `${news.join(", ")}; ${plural(items.size, "item")} now.`;
    }
    this.#announced = items;
    this.#announcedAt = Date.now();
  }
}

// Sorted by estimate, but an item moves up only if its whole interval is above the other estimate:
// a list that noise reorders in every step is unreadable.
function stableOrder(hitters, before) {
  const rank = new Map(before.map((item, place) => [item, place]));
  const known = hitters.filter((hitter) => rank.has(hitter.item));
  known.sort((one, other) => rank.get(one.item) - rank.get(other.item));
  for (let end = known.length - 1; end > 0; end -= 1) {
    for (let place = 0; place < end; place += 1) {
      const [upper, lower] = [known[place], known[place + 1]];
      if (lower.low > upper.estimate) [known[place], known[place + 1]] = [lower, upper];
    }
  }
  for (const hitter of hitters) {
    if (rank.has(hitter.item)) continue;
    const place = known.findIndex((other) => other.estimate < hitter.estimate);
    known.splice(place < 0 ? known.length : place, 0, hitter);
  }
  return known;
}

function makeRow(item) {
  const element = make("li", "hitter");
  const name = make("span", "name");
  const about = make("span", "about");
  const trend = make("span", "trend");
  const since = make("span", "since");
  about.append(trend, since);
  name.append(itemElement(item), about);
  const spark = document.createElementNS(SVG, "svg");
  spark.setAttribute("viewBox", `0 0 ${SPARK.width} ${SPARK.height}`);
  spark.setAttribute("class", "spark");
  spark.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, "path");
  const dot = document.createElementNS(SVG, "circle");
  dot.setAttribute("r", "2.5");
  spark.append(line, dot);
  const bar = make("span", "bar");
  bar.setAttribute("aria-hidden", "true");
  const fill = make("span", "fill");
  const whisker = make("span", "whisker");
  const tick = make("span", "tick");
  bar.append(fill, whisker, tick);
  const value = make("span", "value");
  const estimate = make("b");
  const range = make("span", "range");
  const ends = make("span");
  range.append(make("span", "unseen", "95% interval: "), ends);
  value.append(estimate, make("span", "unit", " users "), range);
  element.append(name, spark, bar, value);
  return { item, element, trend, since, spark: { line, dot }, fill, whisker, tick, estimate, ends };
}

function fillRow(row, hitter, step, { most, seconds }) {
  const share = (value) => `${(100 * Math.max(0, value)) / most}%`;
  row.trend.dataset.trend = hitter.trend;
  row.trend.textContent = `${ARROWS[hitter.trend]} ${hitter.trend}`;
  const steps = step - hitter.since + 1;
  row.since.textContent = hitter.trend === "new" || seconds === null ? "" : `for ${duration(steps * seconds)}`;
  row.fill.style.width = share(hitter.estimate);
  row.whisker.style.left = share(hitter.low);
  row.whisker.style.width = share(hitter.high - hitter.low);
  row.tick.style.left = share(hitter.threshold);
  row.estimate.textContent = number(hitter.estimate);
  row.ends.textContent = interval(hitter);
}

function drawSpark({ line, dot }, series, step, refresh) {
  if (!series) return;
  const from = step - SPARK_STEPS;
  const first = placeOf(series.steps, from + 1);
  const steps = series.steps.slice(first);
  const estimates = series.estimates.slice(first);
  if (!steps.length) return;
  const most = Math.max(...estimates);
  const x = (at) => 3 + ((at - from) / SPARK_STEPS) * (SPARK.width - 6);
  const y = (value) => SPARK.height - 3 - (value / most) * (SPARK.height - 6);
  let path = "";
  steps.forEach((at, place) => {
    const joined = place > 0 && at - steps[place - 1] <= 2 * refresh;
    path += `${joined ? "L" : "M"}${x(at).toFixed(1)} ${y(estimates[place]).toFixed(1)}`;
  });
  line.setAttribute("d", path);
  dot.setAttribute("cx", x(steps.at(-1)).toFixed(1));
  dot.setAttribute("cy", y(estimates.at(-1)).toFixed(1));
}
