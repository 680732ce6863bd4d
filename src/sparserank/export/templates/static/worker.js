// A service worker that keeps the files of this folder, so that index.html searches without a network after its first visit.
// Files come from the network while there is one. A cache holds one export as a whole: a new one replaces it.
const PREFIX = `sparserank ${registration.scope} `;

addEventListener("install", (event) => event.waitUntil(keep()));
addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || !request.url.startsWith(registration.scope)) return;
  event.respondWith(fetch(request).catch((error) => kept(request).then((found) => found ?? Promise.reject(error))));
  if (request.mode === "navigate") event.waitUntil(keep().catch(() => {})); // without a network, nothing is new
});

async function keep() {
  const list = await fetch("export.json", { cache: "no-cache" });
  const text = await list.text();
  const name = PREFIX + (list.headers.get("etag") ?? list.headers.get("last-modified") ?? text);
  const cache = await caches.open(name);
  if (await cache.match("export.json")) return;
  const files = Object.keys(JSON.parse(text).files).filter((file) => /\.(html|js|json)$/.test(file));
  await cache.addAll([...files, "export.json"].map((file) => new Request(file, { cache: "no-cache" }))); // all or none
  for (const other of await caches.keys()) if (other.startsWith(PREFIX) && other !== name) await caches.delete(other);
}

async function kept(request) {
  for (const name of await caches.keys()) {
    if (!name.startsWith(PREFIX)) continue;
    const cache = await caches.open(name);
    const found = await cache.match(request.mode === "navigate" ? "index.html" : request, { ignoreSearch: true });
    if (found) return found;
  }
}
