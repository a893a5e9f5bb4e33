/** MIME types by lower-case file extension. */
const TYPES: Readonly<Record<string, string>> = {
  "3gp": "video/3gpp",
  avi: "video/x-msvideo",
  divx: "video/x-msvideo",
  flv: "video/x-flv",
  m2ts: "video/mp2t",
  m4v: "video/mp4",
  mkv: "video/x-matroska",
  mov: "video/quicktime",
  mp4: "video/mp4",
  mpeg: "video/mpeg",
  mpg: "video/mpeg",
  mts: "video/mp2t",
  ogm: "video/ogg",
  ogv: "video/ogg",
  ts: "video/mp2t",
  vob: "video/mpeg",
  webm: "video/webm",
  wmv: "video/x-ms-wmv",
  aac: "audio/aac",
  ac3: "audio/ac3",
  flac: "audio/flac",
  m4a: "audio/mp4",
  m4b: "audio/mp4",
  mka: "audio/x-matroska",
  mp3: "audio/mpeg",
  oga: "audio/ogg",
  ogg: "audio/ogg",
  opus: "audio/ogg",
  wav: "audio/wav",
  wma: "audio/x-ms-wma",
  ass: "text/x-ssa",
  srt: "application/x-subrip",
  ssa: "text/x-ssa",
  sub: "text/plain",
  vtt: "text/vtt",
  nfo: "text/plain",
  txt: "text/plain",
  gif: "image/gif",
  jpeg: "image/jpeg",
  jpg: "image/jpeg",
  png: "image/png",
  webp: "image/webp",
  pdf: "application/pdf",
  zip: "application/zip",
};

/** Returns the MIME type for the extension of a file name, or `application/octet-stream` if the extension is unknown. */
export function mimeOf(name: string): string {
  const dot = name.lastIndexOf(".");
  const type = dot < 0 ? undefined : TYPES[name.slice(dot + 1).toLowerCase()];
  return type ?? "application/octet-stream";
}

/** Returns the names under which players list a type, `mime` first; MPEG-TS has several (DLNA guidelines 7.3.3). */
export function mimeNames(mime: string): readonly string[] {
  if (mime === "video/mp2t") return ["video/mp2t", "video/vnd.dlna.mpeg-tts", "video/mpegts", "video/mpeg"];
  // Renderers on GStreamer list the type of the demultiplexer, which is the same for both.
  if (mime === "video/mp4") return ["video/mp4", "video/quicktime"];
  if (mime === "video/x-matroska") return ["video/x-matroska", "video/x-mkv"];
  return [mime];
}

/** Returns true if the extension of a file name is that of a video or audio file. */
export function isPlayableName(name: string): boolean {
  return /^(?:video|audio)\//.test(mimeOf(name));
}
