// @ts-check
/// <reference lib="webworker" />
/**
 * The service worker of the installed app: shows the app while the engine does not answer. It answers only with what the engine has
 * sent before, and only if the engine cannot be reached, so that a new version of the program is used at once. Requests of the
 * control interface and of media are not touched.
 */

const worker = /** @type {any} */ (self);
const CACHE = "sluice-app";
/** Files of earlier versions stay until there are more. */
const MAX_FILES = 120;

worker.addEventListener("install", () => worker.skipWaiting());
worker.addEventListener("activate", (/** @type {any} */ event) => event.waitUntil(worker.clients.claim()));
worker.addEventListener("fetch", (/** @type {any} */ event) => {
  const { request } = event;
  const scope = new URL(worker.registration.scope).pathname;
  const { origin, pathname } = new URL(request.url);
  if (request.method !== "GET" || origin !== location.origin || !pathname.startsWith(scope)) return;
  const path = pathname.slice(scope.length);
  if (path === "" || /^app\/(?!content\/|screens\/)/.test(path)) event.respondWith(answer(request));
});

/**
 * Asks the engine and remembers the answer; without an answer, returns the remembered one.
 *
 * @param {Request} request
 */
async function answer(request) {
  const cache = await caches.open(CACHE);
  try {
    const response = await fetch(request);
    if (response.status === 200) {
      await cache.put(request, response.clone());
      const keys = await cache.keys();
      await Promise.all(keys.slice(0, Math.max(0, keys.length - MAX_FILES)).map((key) => cache.delete(key)));
    }
    return response;
  } catch (error) {
    const known = await cache.match(request, { ignoreSearch: true, ignoreVary: true });
    if (known) return known;
    throw error;
  }
}
