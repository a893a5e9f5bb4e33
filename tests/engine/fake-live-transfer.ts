import { SluiceError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import { type LiveTransferContent, liveFiles } from "../../src/live/live-content.ts";
import { NO_FIGURES } from "../../src/protocol/swarm/figures.ts";
import type { ActiveTransfer, LiveControl, PeerTransfer } from "../../src/transfer/contract.ts";

/** A live transfer without a swarm that records calls. */
export class FakeLiveTransfer implements PeerTransfer {
  readonly content: LiveTransferContent;
  readonly infohash: Infohash;
  readonly calls: string[] = [];
  readonly #stopping: () => Promise<void>;

  constructor(content: LiveTransferContent, stopping = async () => {}) {
    this.content = content;
    this.infohash = content.infohash;
    this.#stopping = stopping;
  }

  readonly figures = NO_FIGURES;
  readonly contentId = undefined;

  get name() {
    return this.content.live.file.info.name;
  }

  get files() {
    return liveFiles(this.content.live.file);
  }

  get live(): LiveControl {
    return { content: this.content.live } as LiveControl;
  }

  segmentSource: ActiveTransfer["segmentSource"] = () =>
    Promise.reject(new SluiceError("unsupported_content", "nothing comes"));

  async ready() {}
  source = () => refuse();
  media = () => refuse();
  progress = () => 0;
  headBytes = () => 0;
  transportFile = () => undefined;

  addTrackers(tiers: readonly (readonly string[])[]) {
    this.calls.push(...tiers.flat());
  }

  addPeers(addresses: readonly { readonly port: number }[]) {
    this.calls.push(...addresses.map(({ port }) => String(port)));
  }

  accept() {
    this.calls.push("accept");
    return undefined;
  }

  async stop() {
    this.calls.push("stop");
    await this.#stopping();
  }
}

function refuse(): never {
  throw new SluiceError("no_such_file", "a live stream");
}
