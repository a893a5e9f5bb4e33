import type { Infohash } from "../../src/base/ids.ts";
import type { AnnounceRequest } from "../../src/wire/tracker/announce.ts";

/** The `started` announce of a peer without data, with `changes` applied. */
export function announceRequest(url: string, changes: Partial<AnnounceRequest> = {}): AnnounceRequest {
  return {
    url,
    infohash: "ab".repeat(20) as Infohash,
    peerId: new Uint8Array(20),
    port: 6881,
    uploaded: 0,
    downloaded: 0,
    left: 1,
    event: "started",
    numWant: 50,
    key: 1,
    ...changes,
  };
}
