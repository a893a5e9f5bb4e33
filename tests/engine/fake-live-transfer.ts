import { SluiceError } from "../../src/base/errors.ts";
import type { Infohash } from "../../src/base/ids.ts";
import type { ActiveTransfer } from "../../src/engine/contract.ts";
import type { PeerTransfer } from "../../src/engine/either-transfer.ts";
import type { LiveControl } from "../../src/engine/live/contract.ts";
import { type LiveTransferContent, liveFiles } from "../../src/engine/live/live-content.ts";
import { NO_FIGURES } from "../../src/swarm/figures.ts";

/** A live transfer that has no swarm, and notes what it is told. */
export class FakeLiveTransfer implements PeerTransfer {
  readonly content: LiveTransferContent;
  readonly infohash: Infohash;
  readonly told: string[] = [];
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
    this.told.push(...tiers.flat());
  }

  addPeers(addresses: readonly { readonly port: number }[]) {
    this.told.push(...addresses.map(({ port }) => String(port)));
  }

  accept() {
    this.told.push("accept");
    return undefined;
  }

  async stop() {
    this.told.push("stop");
    await this.#stopping();
  }
}

function refuse(): never {
  throw new SluiceError("no_such_file", "a live stream");
}
