import { SluiceError } from "../../../base/errors.ts";
import { readKnownFile } from "../../../storage/known-file.ts";
import { FilmPeer } from "./film-peer.ts";
import { ed25519Verifier, sha1, sha256 } from "./page-crypto.ts";
import { runWorker } from "./worker-loop.ts";

runWorker(({ url, infohash, file: bytes, film }, post) => {
  const known = readKnownFile(new Uint8Array(bytes), { sha1, sha256, ed25519Verifier });
  if (known.kind !== "vod" || known.file.infohash !== infohash || film === undefined)
    throw new SluiceError("bad_transport_file", "the engine sent other content");
  return new FilmPeer({ ...film, file: known.file, url, post });
});
