import { choice, duration, onOff, size } from "./kinds.ts";
import { setting } from "./setting.ts";

/** Settings of what the engine offers to devices and does in the background. */
export function serviceSettings() {
  return {
    tuner: setting(
      "tuner",
      onOff(),
      "off",
      "Appear as a network tuner (HDHomeRun) to Plex, Emby, Jellyfin, Kodi and television apps of the local network",
    ),
    xtream: setting(
      "xtream",
      onOff(),
      "off",
      "Serve the playlist to television apps by the Xtream Codes API, with the accounts of `sluice account`",
    ),
    recordingsLimit: setting(
      "recordings-limit",
      size(),
      50e9,
      "Disk space of all recordings together; recording stops when it is used",
    ),
    catchUp: setting(
      "catch-up",
      duration(0),
      0,
      "How long the channels that you choose for catch-up are kept, at most 168h, so that past programmes can be played; 0 turns it off",
    ),
    catchUpLimit: setting(
      "catch-up-limit",
      size(),
      50e9,
      "Disk space of catch-up; beyond it, the oldest media is removed",
    ),
    probe: setting(
      "probe",
      choice("off", "hourly", "daily"),
      "off",
      "Visit each live channel for a few seconds while no player plays, to show which ones work; at most 2 Mbit/s on average",
    ),
  } as const;
}
