import { SluiceError } from "../../../base/errors.ts";
import { parseLiveTransportFile } from "../../../wire/live/transport-file.ts";
import { ed25519Verifier, sha1 } from "./page-crypto.ts";
import { SwarmPeer } from "./swarm-peer.ts";
import { runWorker } from "./worker-loop.ts";

runWorker(({ url, infohash, file: bytes, segments }, post) => {
  const file = parseLiveTransportFile(new Uint8Array(bytes), sha1, ed25519Verifier);
  if (file.infohash !== infohash)
    throw new SluiceError("bad_transport_file", "the engine sent another stream");
  return new SwarmPeer({ file, url, segments, post });
});
