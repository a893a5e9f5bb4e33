import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Instant } from "../base/time.ts";
import type { Outbound } from "../outbound/outbound.ts";
import type { OpenMedia } from "../remux/contract.ts";
import type { Runtime } from "../runtime/contract.ts";
import type { SwarmSetup } from "../swarm/contract.ts";
import type { Announcer } from "./announcer.ts";
import type { EngineSettings } from "./contract.ts";
import type { DiskCache } from "./disk-cache.ts";
import type { ConnectionCount, DrivenSwarm } from "./driver.ts";
import type { PieceBufferPool } from "./piece-buffers.ts";
import type { PieceMemory } from "./piece-memory.ts";
import type { Dht, PeerFinder } from "./reach/contract.ts";
import type { PeerLimits } from "./reach/peer-limits.ts";
import type { TransportFiles } from "./transport-files.ts";
import type { ServerSlots } from "./web-seeds/server-slots.ts";

/** What all transfers share. */
export interface TransferHouse {
  readonly runtime: Runtime;
  readonly settings: EngineSettings;
  readonly log: Log;
  readonly openMedia: OpenMedia;
  readonly announcer: Pick<Announcer, "announce" | "scrape">;
  readonly finder: PeerFinder;
  /** Absent where it is off. */
  readonly dht?: Dht;
  readonly outbound: Pick<Outbound, "open">;
  readonly seedSlots: ServerSlots;
  readonly pool: PieceBufferPool;
  readonly memory: PieceMemory;
  /** Undefined: pieces are kept in memory only. */
  readonly cache: DiskCache | undefined;
  readonly kept: TransportFiles;
  readonly connections: ConnectionCount;
  readonly limits: PeerLimits;
  readonly random: Random;
  readonly p2pPort: number;
  readonly makeSwarm: (setup: SwarmSetup, now: Instant) => DrivenSwarm;
}
