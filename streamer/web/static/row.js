// A row of the list: the name of an item, its state, a small chart, its last value and a bar.

import { Spark } from "./spark.js";
import { interval, itemElement, make, number } from "./words.js";

const SIGNS = { new: "\u25cf ", back: "\u21ba ", gone: "\u2715 " };
const ARROWS = { growing: "\u2191", steady: "\u2192", shrinking: "\u2193" };

export class Row {
  constructor(item) {
    this.item = item;
    this.spark = new Spark();
    this.state = make("span", "status");
    this.trend = make("span", "trend");
    this.time = make("span", "time");
    this.estimate = make("b");
    this.unit = make("span", "unit", " users ");
    this.ends = make("span");
    this.label = make("span", "unseen", "95% interval: ");
    this.fill = make("span", "fill");
    this.whisker = make("span", "whisker");
    this.tick = make("span", "tick");
    this.age = make("span", "age");
    this.element = make("li", "hitter");
    this.element.append(
      join("name", itemElement(item), join("about", this.state, this.trend, this.time)),
      this.spark.element,
      join("value", this.estimate, this.unit, join("range", this.label, this.ends)),
      join("measure", this.#bar(), this.age),
    );
  }

  // Shows how an item stands. Its value may be null; the list shows a gone item for a while, of which
  // the share `left` is left.
  show({ state, trend, time, value, age, threshold, left }, most) {
    const share = (users) => `${(100 * Math.max(0, users)) / most}%`;
    this.element.dataset.status = state;
    this.element.style.setProperty("--left", left);
    this.state.textContent = `${SIGNS[state] ?? ""}${state}`;
    this.trend.dataset.trend = trend;
    this.trend.textContent = trend in ARROWS ? `${ARROWS[trend]} ${trend}` : "";
    this.time.textContent = time;
    this.age.textContent = age;
    this.estimate.textContent = value ? number(value.estimate) : "there";
    this.ends.textContent = value ? interval(value) : "last value not loaded";
    for (const part of [this.unit, this.label, this.fill, this.whisker]) part.hidden = !value;
    this.tick.hidden = threshold === null;
    this.tick.style.left = share(threshold);
    if (!value) return;
    this.fill.style.width = share(value.estimate);
    this.whisker.style.left = share(value.low);
    this.whisker.style.width = share(value.high - value.low);
  }

  #bar() {
    const bar = join("bar", this.fill, this.whisker, this.tick);
    bar.setAttribute("aria-hidden", "true");
    return bar;
  }
}

function join(classes, ...parts) {
  const element = make("span", classes);
  element.append(...parts);
  return element;
}
