import type { PlaybackRequest } from "./engine.ts";

/** What it takes to go on with an HLS session that ended because nobody read it. */
export interface PausedPlayer {
  readonly request: PlaybackRequest;
  readonly selectedFiles: readonly number[] | undefined;
  readonly key: string;
  readonly ordinal: number;
}

/** Small records; older ones than these belong to players that are long gone. */
const LIMIT = 64;

/**
 * CHOICE(paused-player): an HLS player that is paused reads nothing, so its session ends, as the interface wants. When
 * it goes on it asks for the next segment of the manifest it has; that brings the session back under the same URLs,
 * for a pause shall not end a film. `stat` and commands do not bring it back, nor does a session that was stopped.
 */
export class PausedPlayers {
  readonly #players = new Map<string, PausedPlayer>();

  /** `place` names the segments: `<infohash>/<ordinal>`. */
  add(place: string, player: PausedPlayer): void {
    this.#players.set(place, player);
    for (const oldest of this.#players.keys()) {
      if (this.#players.size <= LIMIT) break;
      this.#players.delete(oldest);
    }
  }

  get(place: string): PausedPlayer | undefined {
    return this.#players.get(place);
  }

  delete(place: string): void {
    this.#players.delete(place);
  }
}
