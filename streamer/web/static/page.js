// The live page: publications are added to a history, and three views show it.

import { History } from "./history.js";
import { Live } from "./live.js";
import { Now } from "./now.js";
import { Table } from "./table.js";
import { Timeline } from "./timeline.js";
import { clock, duration, number, plural, small } from "./words.js";

const RECENT = 300;

const find = (id) => document.getElementById(id);

const history = new History();
const now = new Now(history);
const table = new Table(history);
const timeline = new Timeline(history, (step) => live.fetchBack(step));
let promise = null;
let current = { step: null, start: null, end: null, hitters: [] };
let connection = "waiting";
let publishedAt = null;

const live = new Live(history, RECENT, {
  state(state) {
    connection = state;
    showState();
  },
  guarantee(given) {
    promise = given;
    history.refresh = promise.attention === "changes" ? 1 : promise.refresh_steps;
    table.lengthMs = 1000 * promise.step_seconds;
    showPromise();
    showAll();
  },
  published(hitters) {
    current = hitters;
    publishedAt = Date.now();
    showAll();
    document.dispatchEvent(new CustomEvent("streamer:published"));
  },
  reset() {
    current = { step: null, start: null, end: null, hitters: [] };
    showAll();
  },
});

function showAll() {
  now.show(current, promise);
  timeline.show(promise, current);
  table.show();
  showStep();
  showState();
}

function showStep() {
  const words = find("now-step");
  if (current.step === null) {
    words.textContent = "";
    return;
  }
  const seconds = (promise?.step_seconds ?? 1) < 60;
  const span = `${clock(Date.parse(current.start), { seconds })} to ${clock(Date.parse(current.end), { seconds })}`;
  words.textContent = `${plural(current.hitters.length, "item")} \u00b7 last step ${span}`;
  words.title = `step ${current.step}, ${current.start} to ${current.end}`;
}

// Live, unless nothing has arrived for much longer than a step takes.
function showState() {
  const length = 1000 * (promise?.step_seconds ?? 60);
  const quiet = publishedAt === null ? 0 : Date.now() - publishedAt;
  let [state, words] = ["waiting", "Connecting"];
  if (connection === "reconnecting") [state, words] = ["reconnecting", "Reconnecting"];
  else if (connection === "live" && current.step === null) words = "Waiting for the first step";
  else if (connection === "live" && quiet > 3 * length + 15_000) {
    words = `No update for ${duration(Math.round(quiet / 1000))}`;
  } else if (connection === "live") [state, words] = ["live", "Live"];
  const element = find("state");
  if (element.dataset.state !== state) element.dataset.state = state;
  if (find("state-words").textContent !== words) find("state-words").textContent = words;
}

function showPromise() {
  const { epsilon, contributions, step_seconds: seconds } = promise;
  const [delta, period] = [small(promise.delta), duration(seconds * promise.period_steps)];
  const words = {
    line:
      `Differentially private: \u03b5 = ${small(epsilon)}, \u03b4 = ${delta} for everything one user does in ` +
      `${period}; each user has a budget of ${plural(contributions, "report")}.`,
    sentence: promise.sentence,
    epsilon: small(epsilon),
    delta,
    contributions: number(contributions),
    period: `${period}, ${plural(promise.period_steps, "step")}`,
    step: duration(seconds),
    threshold: threshold(promise),
    unknown: unknown(promise),
    unique: unique(promise),
    span:
      `The bound is for one period of ${period}. A stretch of time that reaches into two periods costs the ` +
      "privacy loss of both.",
    counted: counted(promise),
    charged: charged(promise),
  };
  for (const [name, text] of Object.entries(words)) find(`promise-${name}`).textContent = text;
  find("promise-trust").hidden = !promise.trusts_producers;
}

function counted({ items_per_step: most, declared_items: declared, declared_threshold: threshold, open_domain: open }) {
  const items = most === 1 ? "the latest item" : `up to ${most} different items, the latest ones,`;
  const rest = open ? "" : " Other items are not counted.";
  const known = declared
    ? ` ${plural(declared, "item")} known in advance: these are shown from about ${plural(threshold, "user")} on.${rest}`
    : "";
  return `Counted are users: of each user, ${items} in a step.${known}`;
}

// What a user's budget is spent on, and what happens when it is spent.
function charged({ attention, loud_price: price, loud_excess: excess, threshold, value_every_steps: every, step_seconds: seconds }) {
  const spent = "A user whose budget is spent stops counting until the next period.";
  if (attention !== "changes") {
    return `${spent} So an item that lasts can disappear from this page while users still have it.`;
  }
  const loud = excess === null ? "" : `, or ${price} from ${plural(threshold + excess, "user")} on`;
  return (
    `What counts against the budgets of an item's users: each number that is shown (1${loud}), and that the item ` +
    `is gone (1). That it is still there costs nothing, so an item that lasts stays on this page. Its number ` +
    `is measured after 1, 2, 4 steps and so on, then every ${duration(every * seconds)}. ${spent}`
  );
}

function threshold({ threshold: least, exit_threshold: exit }) {
  const shown = `threshold: ${plural(least, "user")}; items below it are not shown`;
  return exit === null ? shown : `${shown}, except those that were above it and still have about ${number(exit)}`;
}

function unique({ users, unique_items_per_year: expected }) {
  if (expected === null) return "";
  return (
    `Items that a single user has: at most ${Number(expected.toPrecision(3))} of them are expected to be shown ` +
    `in a year, if each of ${plural(users, "user")} has one in every step.`
  );
}

function unknown({ threshold, attention, refresh_steps: refresh, step_seconds: seconds }) {
  const recheck = attention !== "changes" && refresh > 1 ? ` A reported item is checked again after ${duration(refresh * seconds)}.` : "";
  return (
    `An item that is not shown may have no users, or up to about ${number(threshold)}. How many it has cannot be ` +
    `known, from this page or from anything else that is published.${recheck}`
  );
}

setInterval(showState, 5_000);
live.start();
