/** A player whose form of M3U a list can have. */
export type M3uPlayer = "vlc" | "kodi" | "tivimate" | "jellyfin";

/** What a player reads of an M3U list. */
export interface PlayerForm {
  /** Attributes of entries; undefined: all. */
  readonly attributes?: ReadonlySet<string>;
  /** Maximum number of guides in the header. */
  readonly guides: number;
  /** False if the player takes `News;Sport` for one group. */
  readonly hasSeveralGroups: boolean;
}

const COMMON = ["tvg-id", "tvg-name", "tvg-logo", "group-title"];
/** The list for any player. Its guides are few, because players fetch each of them. */
const ANY_PLAYER: PlayerForm = { guides: 20, hasSeveralGroups: true };

/**
 * CHOICE(export-players): VLC and Jellyfin get one group, no guides and no attributes that they do not read; Kodi gets the first
 * guide; TiviMate gets the list for any player.
 */
const FORMS: Readonly<Record<M3uPlayer, PlayerForm>> = {
  vlc: { attributes: new Set(COMMON), guides: 0, hasSeveralGroups: false },
  jellyfin: { attributes: new Set([...COMMON, "tvg-chno"]), guides: 0, hasSeveralGroups: false },
  kodi: { guides: 1, hasSeveralGroups: true },
  tivimate: ANY_PLAYER,
};

/** Returns what a player reads; without a player, what any player may read. */
export function playerForm(player: M3uPlayer | undefined): PlayerForm {
  return player === undefined ? ANY_PLAYER : FORMS[player];
}
