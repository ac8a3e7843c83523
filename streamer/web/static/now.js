// The list of items that are there now, and of those that have just gone.

import { Row } from "./row.js";
import { goneSteps, justGone, standing } from "./standing.js";
import { duration, number, plural } from "./words.js";

const SHOWN = 12;
const ANNOUNCE_MS = 10_000;

const find = (id) => document.getElementById(id);

export class Now {
  #rows = new Map(); // item -> its row
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
    const seconds = promise?.step_seconds ?? 1; // the guarantee comes before the first step
    const items = standing(current, this.history, seconds, this.#order);
    this.#order = items.map(({ item }) => item);
    const shown = this.#all ? items : items.slice(0, SHOWN);
    const gone = current.step === null ? [] : justGone(this.history, seconds);
    const most = Math.max(...[...items, ...gone].map(({ value }) => Math.max(value?.estimate ?? 0, value?.high ?? 0)), 1);
    const rows = new Map([...shown, ...gone].map((one) => [one.item, this.#row(one, most)]));
    this.#rows = rows;
    place(find("now-list"), shown.map(({ item }) => rows.get(item)));
    place(find("gone-list"), gone.map(({ item }) => rows.get(item)));
    find("gone").hidden = gone.length === 0;
    find("gone-heading").textContent = `Gone in the last ${duration(goneSteps(seconds) * seconds)}`;
    this.#showNotes(current, promise, items.length, shown.length);
    if (current.step !== null) this.#announce(items);
  }

  #row(shown, most) {
    const row = this.#rows.get(shown.item) ?? new Row(shown.item);
    row.show(shown, most);
    const series = this.history.series.get(shown.item);
    if (series) row.spark.show(series, this.history.through, this.history.refresh);
    return row;
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
  #announce(shown) {
    const items = new Set(shown.map(({ item }) => item));
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

function place(list, rows) {
  rows.forEach((row, at) => {
    if (list.children[at] !== row.element) list.insertBefore(row.element, list.children[at] ?? null);
  });
  while (list.children.length > rows.length) list.lastChild.remove();
}
