// A small chart of an item: a band while it is there, and a line through its values.

const STEPS = 120;
const WIDTH = 132;
const HEIGHT = 30;
const EDGE = 3;
const SVG = "http://www.w3.org/2000/svg";

export class Spark {
  constructor() {
    this.element = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "spark", "aria-hidden": "true" });
    this.presence = draw("path", { class: "presence" });
    this.line = draw("path", { class: "line" });
    this.dot = draw("circle", { r: "2.5" });
    this.element.append(this.presence, this.line, this.dot);
  }

  show(series, step, refresh) {
    const from = step - STEPS;
    const bands = [...series.bands(from, refresh)];
    const values = bands.filter(({ estimate }) => estimate !== null);
    const most = Math.max(...values.map(({ estimate }) => estimate), 1);
    const x = (at) => (EDGE + (Math.max(0, at - from) / STEPS) * (WIDTH - 2 * EDGE)).toFixed(1);
    const y = ({ estimate }) => (HEIGHT - 2 * EDGE - (estimate / most) * (HEIGHT - 3 * EDGE)).toFixed(1);
    const isJoined = (place) => place > 0 && values[place].from === values[place - 1].to;
    const line = values.map((value, place) => `${isJoined(place) ? "L" : "M"}${x(value.from)} ${y(value)}`);
    const presence = bands.map((band) => `M${x(band.from)} ${HEIGHT - 1}H${x(Math.min(band.to, step + 1))}`);
    this.presence.setAttribute("d", presence.join(""));
    this.line.setAttribute("d", line.join(""));
    const last = values.at(-1);
    this.dot.toggleAttribute("hidden", !last);
    if (!last) return;
    this.dot.setAttribute("cx", x(last.from));
    this.dot.setAttribute("cy", y(last));
  }
}

function draw(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
  return element;
}
