import type { Command } from "./commands.ts";

/** The settings that change what a broadcast or a relay does. */
const LIVE_SETTINGS = ["upload-limit", "p2p-host", "p2p-port", "max-connections", "data-dir", "log"];

/** `sluice broadcast`. */
export const BROADCAST_COMMAND: Command = {
  name: "broadcast",
  summary: "Broadcast a live stream, for everybody who has its link",
  operands: "<file | url | udp://… | ->",
  maxOperands: 1,
  flags: [
    { name: "test-pattern", help: "Broadcast a moving picture with a clock; needs no media at all" },
    {
      name: "name",
      value: "NAME",
      help: "The same name is the same stream, key, link and port, whenever it is started",
    },
    { name: "title", value: "TEXT", help: "What viewers see (default: the name)" },
    { name: "description", value: "TEXT", help: "Told to viewers" },
    { name: "category", value: "WORD", isRepeated: true, help: "Such as sport; may be given again" },
    { name: "language", value: "CODE", isRepeated: true, help: "Three letters, such as eng" },
    { name: "country", value: "CODE", isRepeated: true, help: "Two letters, such as us" },
    { name: "logo", value: "URL", help: "A picture for lists of channels" },
    { name: "tracker", value: "URL", isRepeated: true, help: "Where viewers find each other" },
    {
      name: "address",
      value: "HOST:PORT",
      isRepeated: true,
      help: "Where the Internet reaches this machine's P2P port; put into the link",
    },
    {
      name: "relay",
      value: "HOST:PORT",
      isRepeated: true,
      help: "A relay of this stream, named to viewers (see sluice relay)",
    },
    { name: "private", help: "Serve the relays alone; viewers get the stream from them" },
    {
      name: "hls",
      value: "URL",
      isRepeated: true,
      help: "A copy of the stream on the web: viewers get there what peers bring too late",
    },
    {
      name: "bitrate",
      value: "RATE",
      help: "What the stream needs at most, such as 8Mbit (default: measured for 3 s)",
    },
    { name: "loop", help: "Begin a file again at its end" },
    {
      name: "standby",
      help: "On air only while no other machine with its key is; see README for the key",
    },
    { name: "json", help: "Write what the stream is called as one line of JSON" },
    { name: "list", help: "Show what was broadcast from here" },
  ],
  takesSettings: true,
  shownSettings: ["host", "http-port", "tracker-server", ...LIVE_SETTINGS],
  examples: [
    ["sluice broadcast --test-pattern", "see live work: watch the link that it prints, anywhere"],
    ["ffmpeg … -f mpegts - | sluice broadcast - --name news", "whatever ffmpeg can read"],
    ["sluice broadcast film.ts --loop --title 'All day'", "a file of MPEG-TS, over and over"],
    ["sluice broadcast udp://@239.1.1.1:1234", "a multicast group of this network"],
    ["sluice broadcast udp://@:1234 --name news --standby", "the second machine of two: takes over in 3 s"],
    ["sluice broadcast --list", "the names and infohashes that are known here"],
  ],
};

/** `sluice relay`. */
export const RELAY_COMMAND: Command = {
  name: "relay",
  summary: "Keep a live stream, and give it to its viewers",
  operands: "<link | magnet | infohash | transport file | url>",
  maxOperands: 1,
  flags: [],
  takesSettings: true,
  shownSettings: ["live-window", "live-limit", ...LIVE_SETTINGS],
  examples: [
    ["sluice relay 'sluice:?magnet=…'", "until Ctrl-C; prints its address for the source"],
    ["sluice relay news.sluice --upload-limit 20MB --live-window 2h", "two hours to go back to"],
  ],
};
