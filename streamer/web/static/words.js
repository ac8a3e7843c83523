// Formats numbers, times and items for readers.

const grouped = new Intl.NumberFormat("en");
const clocks = new Map();

export const number = (value) => grouped.format(value);

export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

// The 95% interval of a report. In words: screen readers skip a dash.
export const interval = ({ low, high }) => `${number(low)} to ${number(high)}`;

// A very small number as a power of ten: 10\u207b\u2076.
export function small(value) {
  if (value >= 0.001) return String(value);
  const [digits, power] = value.toExponential().split("e-");
  const raised = [...power].map((digit) => "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[digit]).join("");
  return `${digits === "1" ? "" : `${digits}\u00d7`}10\u207b${raised}`;
}

// Items are untrusted strings: invisible and direction-changing characters are shown as signs.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|\p{Cs}/gu;

export function visible(item) {
  return item.replace(UNSEEN, (sign) => {
    const code = sign.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    if (code === 0x7f) return "\u2421";
    return `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
  });
}

// A moment in the reader's time zone; with seconds for short steps.
export function clock(moment, { seconds = true, day = false } = {}) {
  const kind = `${seconds} ${day}`;
  if (!clocks.has(kind)) {
    clocks.set(kind, new Intl.DateTimeFormat("en-GB", {
      hour: "2-digit",
      minute: "2-digit",
      ...(seconds && { second: "2-digit" }),
      ...(day && { day: "numeric", month: "short" }),
    }));
  }
  return clocks.get(kind).format(moment);
}

const UNITS = [[86400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]];

export function duration(seconds) {
  for (const [size, unit] of UNITS) {
    if (seconds >= size && Number.isInteger(seconds / size)) return plural(seconds / size, unit);
  }
  const [size, unit] = UNITS.find(([least]) => seconds >= least) ?? [1, "second"];
  return `${number(Math.round((seconds / size) * 10) / 10)} ${unit}s`;
}

// A length of time in two or three digits: 90 minutes, 5 hours.
export function roughly(seconds) {
  const [size, unit] = UNITS.find(([least]) => seconds >= 2 * least || seconds === least) ?? [1, "second"];
  return size === 1 ? duration(seconds) : plural(Math.round(seconds / size), unit);
}

export function make(tag, classes = "", text = "") {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  if (text) element.textContent = text;
  return element;
}

// The element that shows an item: as text, never as markup, with the full text in its title.
export function itemElement(item) {
  const element = make("bdi", "item", visible(item));
  element.title = visible(item);
  element.dir = "auto";
  return element;
}
