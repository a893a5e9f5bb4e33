// @ts-check
import { readLink } from "./link.js";

/** Two devices of one household find each other within a second or two, or not at all. */
const CONNECT_MS = 15_000;

/**
 * What one screen hands to another: what to play, and from where on.
 *
 * @typedef {{ link: import("./link.js").Link, fileIndex: number | undefined, atSeconds: number }} Handover
 */

/**
 * A page that others can send to, until `close`.
 *
 * @typedef {{ code: string, close: () => void }} Receiver
 */

/**
 * Makes this page one that others can send to; resolves with the code to type there.
 *
 * @param {(handover: Handover) => void} received
 * @returns {Promise<Receiver>}
 */
export async function receive(received) {
  const peer = await openPeer();
  peer.on("connection", (connection) => {
    connection.on("data", (data) => {
      const handover = readHandover(data);
      connection.send(handover === undefined ? "refused" : "taken");
      if (handover !== undefined) received(handover);
    });
  });
  return { code: peer.id, close: () => peer.destroy() };
}

/**
 * Sends to the page that shows `code`; resolves when that page has taken it.
 *
 * @param {string} code
 * @param {Handover} handover
 */
export async function send(code, handover) {
  const peer = await openPeer();
  try {
    await new Promise((resolve, reject) => {
      setTimeout(() => reject(new Error("The other screen does not answer")), CONNECT_MS);
      peer.on("error", (error) =>
        reject(new Error(error.type === "peer-unavailable" ? "No screen shows this code" : error.message)),
      );
      const connection = peer.connect(code, { serialization: "json", reliable: true });
      connection.on("open", () => connection.send(handover));
      connection.on("data", (answer) =>
        answer === "taken" ? resolve(undefined) : reject(new Error("The other screen refused it")),
      );
    });
  } finally {
    peer.destroy();
  }
}

/**
 * Reads what came from another page; undefined where it is nothing to play.
 *
 * @param {any} data
 * @returns {Handover | undefined}
 */
export function readHandover(data) {
  const { link, fileIndex, atSeconds } = data ?? {};
  const isIndex = fileIndex === undefined || (Number.isInteger(fileIndex) && fileIndex >= 0);
  if (typeof link?.value !== "string" || !isIndex || !Number.isFinite(atSeconds)) return undefined;
  const known = readLink(link.value);
  if (known === undefined) return undefined;
  // The same digits can be an infohash or a content id.
  const isContentId = known.parameter === "infohash" && link.parameter === "content_id";
  return {
    link: isContentId ? { ...known, parameter: "content_id" } : known,
    fileIndex,
    atSeconds: Math.max(0, atSeconds),
  };
}

/**
 * A PeerJS peer that our own engine knows. No server elsewhere helps it: two devices of one network need none.
 *
 * @returns {Promise<import("peerjs").Peer>}
 */
async function openPeer() {
  const { Peer } = await import("peerjs");
  const peer = new Peer({
    host: location.hostname,
    port: Number(location.port || (location.protocol === "https:" ? 443 : 80)),
    path: "/app/screens",
    secure: location.protocol === "https:",
    config: { iceServers: [] },
  });
  await new Promise((resolve, reject) => {
    peer.once("open", resolve);
    peer.once("error", reject);
  });
  return peer;
}
