// Live refresh, and nothing else: every page works without this file. New rows make the main part of the page load again,
// unless somebody is typing; what is being computed or drawn shows how far it is.
"use strict";
(function () {
  const live = document.body.dataset.live;
  const refresh = Number(document.body.dataset.refresh || 0);
  let seen = null, typed = 0;

  function typing() {
    const at = document.activeElement;
    if (at && ["INPUT", "TEXTAREA", "SELECT"].includes(at.tagName)) return true;
    return Array.from(document.querySelectorAll("main textarea, main input:not([type=hidden])")).some(
      (field) => field.value !== field.defaultValue);
  }

  // What has the keyboard's attention keeps it: the same link, button or field of the new page.
  const REACHABLE = "main a, main button, main summary, main input, main select, main textarea, main [tabindex]";
  function where(part) {
    if (!part || !part.closest || !part.closest("main") || part.id === "main") return "";
    return [part.tagName, part.id, part.getAttribute("href"), part.getAttribute("name"), part.textContent.length < 80 ? part.textContent : ""].join("|");
  }

  async function reload() {
    if (typing()) return false;
    const answer = await fetch(location.pathname + location.search.replace(/&(told|asked)=\d+/g, ""), { headers: { Accept: "text/html" } });
    if (!answer.ok) return false;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (typing()) return false; // meanwhile
    const open = Array.from(document.querySelectorAll("main details")).map((part) => part.open);
    const place = where(document.activeElement);
    document.querySelector("main").replaceChildren(...fresh.querySelector("main").childNodes);
    document.querySelectorAll("main details").forEach((part, i) => { part.open = Boolean(open[i]); });
    const again = Array.from(document.querySelectorAll(REACHABLE)).find((part) => where(part) === place);
    if (place && again) again.focus({ preventScroll: true });
    document.body.dataset.refresh = fresh.body.dataset.refresh || "0";
    return true;
  }

  function show(place, state) {
    if (!place) return;
    const bar = place.querySelector("progress");
    if (typeof state.share === "number") bar.value = state.share; else bar.removeAttribute("value");
    place.querySelector("span").textContent = state.text;
  }

  // A page that waits for an answer: once it is there, the same address leads to it, so loading it again does no harm.
  const waiting = document.querySelector("[data-waiting]");
  async function ask() {
    try {
      const answer = await fetch(waiting.dataset.waiting);
      if ([429, 503].includes(answer.status)) throw new Error("busy");
      const state = answer.ok ? await answer.json() : { finished: true };
      if (state.finished) { location.replace(location.href); return; }
      show(waiting.querySelector(".how-far"), state);
    } catch {
      show(waiting.querySelector(".how-far"), { share: null, text: "the server does not answer; trying again" });
    }
    setTimeout(ask, 1000);
  }
  if (waiting) setTimeout(ask, 1000);

  // Browsers open six connections to a server at most: a page that nobody looks at gives its one back.
  let stream = null;
  function listen() {
    if (document.hidden) {
      if (stream) stream.close();
      stream = null;
      return;
    }
    if (stream) return;
    stream = new EventSource(live);
    stream.addEventListener("state", (event) => {
      const state = JSON.parse(event.data);
      const key = JSON.stringify([state.rows === undefined ? state : state.rows, state.drawing]);
      if (state.drawing) show(document.querySelector("#drawing .how-far"), state);
      if (seen !== null && key !== seen) reload().then((done) => { if (!done) later(); }, later);
      seen = key;
    });
  }
  function later() { // somebody was typing: when they have finished
    clearTimeout(typed);
    typed = setTimeout(() => reload().then((done) => { if (!done) later(); }, later), 5000);
  }
  if (live && window.EventSource) {
    listen();
    document.addEventListener("visibilitychange", listen);
    window.addEventListener("pagehide", () => { if (stream) stream.close(); stream = null; });
    window.addEventListener("pageshow", listen);
  }
  if (refresh) {
    const again = async () => {
      await reload();
      if (Number(document.body.dataset.refresh || 0)) setTimeout(again, 1000 * refresh);
    };
    setTimeout(again, 1000 * refresh);
  }
})();
