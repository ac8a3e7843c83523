// The demo's part of the page: the actual numbers next to the reported ones.

import { load } from "./live.js";
import { itemElement, make, number, plural } from "./words.js";

const find = (id) => document.getElementById(id);

let asking = false;

async function show() {
  if (asking) return;
  asking = true;
  try {
    const truth = await load("api/truth");
    if (truth.step !== null) fill(truth);
  } catch {
    // The connection is lost; the next publication retries.
  } finally {
    asking = false;
  }
}

function fill({ threshold, items, withheld, singles }) {
  find("truth-summary").textContent =
    `In this step, ${plural(withheld, "item")} below the threshold of ${plural(threshold, "user")} ` +
    `${withheld === 1 ? "is" : "are"} correctly not shown. ${number(singles)} of them belong to a single user.`;
  find("truth-body").replaceChildren(...items.map((each) => rowOf(each)));
}

function rowOf({ item, now, users, estimate, rightly }) {
  const row = make("tr", estimate === null ? "withheld" : "");
  const name = make("td");
  name.append(itemElement(item));
  const reported = estimate !== null;
  const off = reported ? estimate - users : null;
  const sign = off < 0 ? "\u2212" : "+";
  row.append(
    name,
    make("td", "number", number(now)),
    make("td", "number", reported ? number(estimate) : "\u2013"),
    make("td", "number off", reported ? `${sign}${number(Math.abs(off))}` : ""),
    make("td", "verdict", verdict(reported, rightly)),
  );
  return row;
}

function verdict(reported, rightly) {
  if (reported) return rightly ? "shown" : "shown, although few users have it";
  return rightly ? "correctly not shown" : "missed: noise, or its users have no reports left";
}

document.addEventListener("streamer:published", show);
