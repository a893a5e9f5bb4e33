// @ts-check

import { readHandover } from "../parts/link.js";
import { appUrl } from "../parts/place.js";
import { t } from "../parts/text.js";

/** Two devices of the same network connect within two seconds, or not at all. */
const CONNECT_TIMEOUT_MS = 15_000;

/**
 * A page that accepts a handover, until `close`.
 *
 * @typedef {{ code: string, close: () => void }} Receiver
 */

/**
 * Starts to accept handovers from other devices. Resolves with the code that the user types there. Calls `expired` when
 * the engine revokes the code.
 *
 * @param {(handover: import("../parts/link.js").Handover) => void} received
 * @param {() => void} expired
 * @returns {Promise<Receiver>}
 */
export async function receive(received, expired) {
  const peer = await openPeer();
  let isClosed = false;
  peer.on("disconnected", () => {
    if (!isClosed) expired();
  });
  peer.on("connection", (connection) => {
    connection.on("data", (data) => {
      const handover = readHandover(data);
      connection.send(handover === undefined ? "refused" : "taken");
      if (handover !== undefined) received(handover);
    });
  });
  const close = () => {
    isClosed = true;
    peer.destroy();
  };
  return { code: peer.id, close };
}

/**
 * Sends a handover to the page that shows `code`. Resolves when that page has accepted it.
 *
 * @param {string} code
 * @param {import("../parts/link.js").Handover} handover
 */
export async function send(code, handover) {
  const peer = await openPeer();
  try {
    await new Promise((resolve, reject) => {
      setTimeout(() => reject(new Error(t("The other screen does not answer"))), CONNECT_TIMEOUT_MS);
      peer.on("error", (error) =>
        reject(new Error(error.type === "peer-unavailable" ? t("No screen shows this code") : error.message)),
      );
      const connection = peer.connect(code, { serialization: "json", reliable: true });
      connection.on("open", () => connection.send(handover));
      connection.on("data", (answer) =>
        answer === "taken" ? resolve(undefined) : reject(new Error(t("The other screen cannot play this"))),
      );
    });
  } finally {
    peer.destroy();
  }
}

/**
 * Opens a PeerJS peer that uses only the signaling of this engine. Two devices of the same network need no ICE servers.
 *
 * @returns {Promise<import("peerjs").Peer>}
 */
async function openPeer() {
  const { Peer } = await import("peerjs");
  const peer = new Peer({
    host: location.hostname,
    port: Number(location.port || (location.protocol === "https:" ? 443 : 80)),
    path: new URL(appUrl("app/screens")).pathname,
    secure: location.protocol === "https:",
    config: { iceServers: [] },
  });
  await new Promise((resolve, reject) => {
    peer.once("open", resolve);
    peer.once("error", reject);
  });
  return peer;
}
