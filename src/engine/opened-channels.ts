import { toHex } from "../base/bytes.ts";
import { type Infohash, infohashOf } from "../base/ids.ts";
import type { Log } from "../base/log.ts";
import { trimOldest } from "../base/trim-oldest.ts";
import { encodeUtf8 } from "../base/utf8.ts";
import type { ChannelSource } from "../playback/channel-feed.ts";
import { ChannelTransfer } from "../playback/channel-transfer.ts";
import type { ContentResolver, PlaybackRequest, RemuxForPlayer } from "../playback/contract.ts";
import type { ChannelReport } from "../playback/diagnosis/channel-rows.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { ActiveTransfer, EngineSettings, TransferContent, Transfers } from "../transfer/contract.ts";

/** The default session limit: the players of older channels have left. */
const MAX_OPENED = 256;

/** A channel as a player requests it. */
export interface ChannelRequest {
  readonly title: string;
  /** Best first. */
  readonly sources: readonly {
    /** For reports. */
    readonly name: string;
    readonly request: PlaybackRequest;
  }[];
}

interface OpenedChannelsDependencies {
  readonly runtime: Pick<Runtime, "clock" | "sha1" | "randomBytes">;
  readonly settings: Pick<EngineSettings, "liveWindowMs">;
  readonly transfers: Pick<Transfers, "open" | "windowStorage">;
  readonly log: Log;
  /** Returns the sources of a channel and the report about them. */
  connect(
    channel: ChannelRequest,
    remux: RemuxForPlayer,
  ): { sources: readonly ChannelSource[]; report: ChannelReport };
}

/**
 * The channels that sessions play, as content of its own. CHOICE(channel-id): its id, in place of an infohash, is a hash of its sources
 * and of a secret of this run. Players that request the same channel in the same way share one transfer.
 */
export class OpenedChannels {
  readonly #dependencies: OpenedChannelsDependencies;
  readonly #secret: string;
  readonly #known = new Map<Infohash, { readonly channel: ChannelRequest; readonly remux: RemuxForPlayer }>();
  readonly #open = new Map<Infohash, ChannelTransfer>();

  constructor(dependencies: OpenedChannelsDependencies) {
    this.#dependencies = dependencies;
    this.#secret = toHex(dependencies.runtime.randomBytes(16));
  }

  /** Returns the id that plays this channel. */
  add(channel: ChannelRequest, remux: RemuxForPlayer): Infohash {
    const text = JSON.stringify([this.#secret, channel]);
    const infohash = infohashOf(this.#dependencies.runtime.sha1(encodeUtf8(text)));
    this.#known.delete(infohash);
    this.#known.set(infohash, { channel, remux });
    trimOldest(this.#known, MAX_OPENED);
    return infohash;
  }

  /** Returns a resolver that knows these channels, and else resolves as `next` does. */
  resolver(next: ContentResolver): ContentResolver {
    return async (selector, options) => {
      const known = selector.kind === "infohash" ? this.#known.get(selector.infohash) : undefined;
      if (selector.kind !== "infohash" || !known) return next(selector, options);
      const { infohash } = selector;
      const content = { infohash, displayName: known.channel.title, trackers: [], peers: [] };
      return { content, selectedFiles: undefined };
    };
  }

  /** Opens the transfer of a channel or of other content. */
  open(content: TransferContent): ActiveTransfer {
    const { infohash } = content;
    const known = this.#known.get(infohash);
    const open = this.#open.get(infohash);
    if (open || !known) return open ?? this.#dependencies.transfers.open(content);
    const { runtime, settings, transfers, log, connect } = this.#dependencies;
    const transfer = new ChannelTransfer({
      ...connect(known.channel, known.remux),
      infohash,
      clock: runtime.clock,
      log,
      storage: transfers.windowStorage(),
      limitMs: settings.liveWindowMs,
      onStop: () => this.#open.delete(infohash),
    });
    this.#open.set(infohash, transfer);
    return transfer;
  }

  /** Stops all channels. */
  async close(): Promise<void> {
    await Promise.all([...this.#open.values()].map((transfer) => transfer.stop()));
  }
}
