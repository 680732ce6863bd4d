// The model view: its versions, what each changed in words, held-out figures, and a way back to an earlier one.

import { changesOf, model, promote, rollback, withdraw } from "./api.js";
import { ago, asTyped, button, element, failure, loading, percent, pluralize, signed, spelled } from "./elements.js";
import { askToken } from "./token.js";

const CHANGES = 12;

/** "car now looks for boat (+40.00)" */
function changeText({ query, document, before, after }) {
  const same = query === document;
  const object = same ? "itself" : spelled(document);
  const from = `${before ? signed(before) : "0"} → ${after ? signed(after) : "0"}`;
  const verb = !before ? (after > 0 ? "now looks for" : "now avoids")
    : !after ? "no longer looks for"
      : Math.sign(before) !== Math.sign(after) ? (after > 0 ? "now looks for" : "now avoids")
        : Math.abs(after) > Math.abs(before) ? (after > 0 ? "looks more for" : "avoids more") : after > 0 ? "looks less for" : "avoids less";
  return element("li", {}, element("strong", {}, asTyped(query)), ` ${verb} `, element("strong", {}, object), " ", element("span", { class: "value" }, from));
}

/** What a version changed, loaded when the user opens it. */
function changesOfVersion(version) {
  const body = element("div", {}, loading());
  const details = element("details", { class: "changed" }, element("summary", {}, "What it changed"), body);
  const load = async () => {
    try {
      const { changes } = await changesOf(version.number, CHANGES);
      body.replaceChildren(changes.length ? element("ul", { class: "changes" }, ...changes.map(changeText)) : element("p", {}, "No pair of words."));
    } catch (trouble) {
      body.replaceChildren(failure(trouble));
      if (trouble.kind === "busy" && body.isConnected) setTimeout(load, 1000 * trouble.wait);
    }
  };
  details.addEventListener("toggle", load, { once: true });
  return details;
}

const FIGURES = [["judgments", "held-out judgments, nDCG@10"], ["feedback", "held-out votes and visits"], ["lessons", "votes and visits it learned from"]];

/** Held-out figures before and after. */
function figures({ check }) {
  const rows = FIGURES.filter(([name]) => typeof check?.after?.[name] === "number");
  if (!rows.length) return null;
  const figure = (value) => (typeof value === "number" ? value.toFixed(3) : "–");
  return element("dl", { class: "figures" }, ...rows.map(([name, label]) => element("div", {},
    element("dt", {}, label), element("dd", {}, `${figure(check.before?.[name])} → ${figure(check.after[name])}`))));
}

function versionItem(version, { version: current, trial }, serve) {
  const own = version.number === current;
  const back = button(`Serve version ${version.number} again`, {
    class: "restore",
    onclick: () => {
      const sure = button(`Yes, serve version ${version.number}`, { class: "sure", onclick: () => serve(version.number) });
      back.replaceWith(sure);
      sure.focus();
    },
  }, "Serve again");
  return element("li", { class: own ? "current" : null, "aria-current": own ? "true" : null },
    element("div", { class: "version-head" }, element("h3", {}, `Version ${version.number}`), own && element("span", { class: "badge" }, "served now"),
      element("time", { datetime: version.made, title: version.made }, ago(version.made))),
    element("p", {}, `${version.why.charAt(0).toUpperCase()}${version.why.slice(1)}. ${pluralize(version.pairs, "word pair")}.`), figures(version), version.parent !== null && changesOfVersion(version),
    !own && version.number !== trial?.candidate && back); // a candidate has buttons of its own
}

/** The outcome of the last learning round. */
function learnerText(learner) {
  const last = learner?.last;
  if (!last?.said) return learner?.learning === false ? element("p", { class: "learner" }, "This service does not learn from votes and visits.") : null;
  return element("p", { class: "learner", role: "status" }, element("strong", {}, learner.working ? "Learning now. " : "Last round: "), last.said,
    last.at && element("time", { datetime: last.at, title: last.at }, ago(last.at)));
}

/** The trial of a candidate: how often users preferred it. act: {promote(number), withdraw(number)} */
function trialItem(trial, act) {
  if (!trial) return null;
  const decided = trial.wins + trial.losses;
  const result = decided
    ? `Users preferred it in ${trial.wins.toLocaleString("en")} of ${pluralize(decided, "search", "searches")} that had a winner: ${percent(trial.won)}, between ${percent(trial.low)} and ${percent(trial.high)} (p = ${Number(trial.p_value.toPrecision(2))}).`
    : "No search has a winner yet.";
  const rule = trial.rule && `The service decides after ${trial.rule.after.toLocaleString("en")} searches with a winner.`;
  return element("section", { class: "trial", "aria-label": "Trial" },
    element("h3", {}, `Version ${trial.candidate} is on trial`),
    element("p", {}, `It takes part in ${percent(trial.share)} of the searches, since `, element("time", { datetime: trial.since, title: trial.since }, ago(trial.since)), `. ${result} ${rule ?? ""}`),
    element("p", { class: "trial-actions" },
      button(`Serve version ${trial.candidate}`, { class: "restore promote", onclick: () => act.promote(trial.candidate) }, "Serve it"),
      button(`End the trial of version ${trial.candidate}`, { class: "restore withdraw", onclick: () => act.withdraw(trial.candidate) }, "End the trial")));
}

/** Draw the view. act: {changed()} */
export async function drawModel(view, act) {
  const body = element("div", { class: "model" }, loading());
  view.replaceChildren(element("h2", { class: "view-title" }, "The model"), body);
  const draw = async () => {
    try {
      const found = await model();
      const rows = [["documents", found.documents], ["words", found.words], ["word pairs", found.pairs]];
      body.replaceChildren(...[
        element("dl", { class: "facts" }, ...rows.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, Number(value ?? 0).toLocaleString("en"))))),
        learnerText(found.learner),
        trialItem(found.trial, { promote: (number) => change(promote, number), withdraw: (number) => change(withdraw, number) }),
        element("ol", { class: "versions", reversed: true }, ...[...found.versions].reverse().map((one) => versionItem(one, found, serve)))].filter(Boolean));
    } catch (trouble) {
      body.replaceChildren(failure(trouble), button("Try again", { class: "again", onclick: draw }));
    }
  };
  const serve = (number) => change(rollback, number);
  const change = async (how, number) => {
    try {
      await how(number);
      act.changed();
      await draw();
    } catch (trouble) {
      if (trouble.kind === "token") return void askToken("Only people with an administrator's token can change the version.", () => change(how, number), draw);
      body.prepend(failure(trouble));
    }
  };
  await draw();
}
