import { type Command, JSON_FLAG } from "./command.ts";

/** Settings that matter to broadcasts and relays. */
const LIVE_SETTINGS = ["upload-limit", "p2p-host", "p2p-port", "max-connections", "data-dir", "log"];

const CONTENT = "<link | magnet | infohash | transport file | url>";

/** The commands that take content, and the one that writes a page for it. */
export const CONTENT_COMMANDS: readonly Command[] = [
  {
    name: "play",
    summary: "Play content in a player, or write it to a file or standard output",
    operands: CONTENT,
    maxOperands: 1,
    completes: "files",
    flags: [
      {
        name: "output",
        short: "o",
        value: "FILE",
        help: "Write to this file, or to standard output if it is -",
      },
      {
        name: "player",
        short: "p",
        value: "NAME",
        values: ["mpv", "vlc", "ffplay"],
        help: "Play in this player (default: the first of mpv, vlc and ffplay that is installed)",
      },
      {
        name: "index",
        short: "i",
        value: "N",
        help: "Play the file with this index, counted from 0 (default: the largest playable file, or all parts of a series)",
      },
      {
        name: "format",
        short: "f",
        value: "raw|ts",
        values: ["raw", "ts"],
        help: "The file as it is, or remuxed to MPEG-TS (default: raw; live streams are always ts)",
      },
      { name: "list", help: "List the files of the content instead of playing it" },
      { name: "json", help: "Write the list, or the progress on standard error, as lines of JSON" },
    ],
    takesSettings: true,
    shownSettings: ["peers-timeout", "p2p-port", "upload-limit", "download-limit", "bind", "proxy", "log"],
    examples: [
      ["sluice play 'magnet:?xt=urn:btih:…'", "in the first installed player"],
      ["sluice play film.torrent --output film.mkv", "to a file, in playback order"],
      ["sluice play film.torrent --output - | ffprobe -", "to standard output"],
      ["sluice play film.torrent --format ts --player vlc", "remuxed to MPEG-TS, in VLC"],
      ["sluice play 'sluice:?magnet=…'", "a live stream, until Ctrl-C"],
    ],
  },
  {
    name: "broadcast",
    summary: "Broadcast a live stream to all viewers that have its link",
    operands: "<file | url | udp://… | rtmp://… | srt://… | ->",
    maxOperands: 1,
    completes: "files",
    flags: [
      { name: "test-pattern", help: "Broadcast a generated test pattern with a clock" },
      {
        name: "name",
        value: "NAME",
        help: "Name of the stream; the same name keeps its key, link and port at every start",
      },
      { name: "title", value: "TEXT", help: "Title that viewers see (default: the name)" },
      { name: "description", value: "TEXT", help: "Description that viewers see" },
      { name: "category", value: "WORD", isRepeated: true, help: "Category, such as sport; repeatable" },
      {
        name: "language",
        value: "CODE",
        isRepeated: true,
        help: "Language as three letters, such as eng; repeatable",
      },
      {
        name: "country",
        value: "CODE",
        isRepeated: true,
        help: "Country as two letters, such as us; repeatable",
      },
      { name: "logo", value: "URL", help: "Logo for channel lists" },
      {
        name: "tracker",
        value: "URL",
        isRepeated: true,
        help: "Tracker through which viewers find each other; repeatable",
      },
      {
        name: "address",
        value: "HOST:PORT",
        isRepeated: true,
        help: "Public address of this machine's peer port, added to the link; repeatable",
      },
      {
        name: "relay",
        value: "HOST:PORT",
        isRepeated: true,
        help: "Relay of this stream that viewers can use (see sluice relay); repeatable",
      },
      {
        name: "relay-pass",
        value: "FILE",
        help: "Write a pass for a relay of the stream --name, and end: with it, the relay proves its role",
      },
      { name: "private", help: "Serve only the relays; viewers receive the stream from them" },
      {
        name: "hls",
        value: "URL",
        isRepeated: true,
        help: "HLS copy of the stream: viewers load from it what peers deliver too late; repeatable",
      },
      {
        name: "renditions",
        value: "LIST",
        help: "Further qualities that ffmpeg encodes, such as 720p:3M,480p:1M; viewers choose",
      },
      {
        name: "variant",
        value: "SOURCE",
        isRepeated: true,
        help: "Source of the same programme in another quality; repeatable",
      },
      {
        name: "programmes",
        value: "LIST",
        help: "Programmes of the source, such as 1,2: the first one, and its other qualities",
      },
      {
        name: "bitrate",
        value: "RATE",
        help: "Maximum bit rate of the stream, such as 8Mbit (default: measured for 3 s)",
      },
      { name: "loop", help: "Start a file again when it ends" },
      {
        name: "standby",
        help: "Go on air only while no other machine with the same key is on air",
      },
      {
        name: "rotate",
        help: "Replace the key: a new link; viewers of the old one are sent there for 30 days while this runs",
      },
      {
        name: "successor",
        value: "FILE",
        help: "Transport file of the stream that replaces this one: tells viewers, and revokes the key of this one",
      },
      { name: "json", help: "Write the names of the stream, or the list, as one line of JSON" },
      { name: "list", help: "List the broadcasts in the data folder" },
    ],
    takesSettings: true,
    shownSettings: ["host", "http-port", "tracker-server", ...LIVE_SETTINGS],
    examples: [
      ["sluice broadcast --test-pattern", "try it: watch the link that it prints on any machine"],
      ["ffmpeg … -f mpegts - | sluice broadcast - --name news", "anything that ffmpeg can read"],
      ["sluice broadcast film.ts --loop --title 'All day'", "an MPEG-TS file, in a loop"],
      ["sluice broadcast udp://@239.1.1.1:1234", "a multicast group of this network"],
      [
        "sluice broadcast rtmp://0.0.0.0:1935/live --name show",
        "receives from OBS; prints server and stream key",
      ],
      [
        "sluice broadcast udp://@:1234 --name news --standby",
        "the second of two machines: takes over in 3 s",
      ],
      ["sluice broadcast --list", "names and infohashes of the broadcasts in the data folder"],
    ],
  },
  {
    name: "relay",
    summary: "Relay a live stream to its viewers",
    operands: CONTENT,
    maxOperands: 1,
    completes: "files",
    flags: [
      {
        name: "pass",
        value: "FILE",
        help: "Pass of the broadcaster (see sluice broadcast --relay-pass): viewers prefer the relay without being told its address",
      },
      { name: "json", help: "Write the addresses of the relay as one line of JSON" },
    ],
    takesSettings: true,
    shownSettings: ["live-window", "live-limit", ...LIVE_SETTINGS],
    examples: [
      ["sluice relay 'sluice:?magnet=…'", "until Ctrl-C; prints the address to give to the source"],
      ["sluice relay news.sluice --upload-limit 20MB --live-window 2h", "viewers can seek back two hours"],
    ],
  },
  {
    name: "viewer-page",
    summary: "Write the page for viewers of a live stream into a folder, for any web server",
    operands: "<folder>",
    maxOperands: 1,
    completes: "files",
    flags: [
      { name: "infohash", value: "HEX", help: "The stream: 40 hexadecimal digits" },
      { name: "engine", value: "URL", help: "The engine that serves the stream, as its viewers reach it" },
      {
        name: "tracker",
        value: "URL",
        isRepeated: true,
        help: "WebSocket tracker of the broadcast that the page may use; repeatable",
      },
      JSON_FLAG,
    ],
    takesSettings: false,
    examples: [
      [
        "sluice viewer-page site --infohash 0123… --engine https://tv.example.org/",
        "upload the folder to a web server",
      ],
    ],
  },
];
