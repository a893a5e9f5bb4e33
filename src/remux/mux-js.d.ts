/** Types for the used part of mux.js, which has no types of its own. */
declare module "mux.js" {
  interface TransmuxedSegment {
    readonly type: "combined" | "video" | "audio";
    readonly initSegment: Uint8Array;
    readonly data: Uint8Array;
  }
  interface Transmuxer {
    on(event: "data", listener: (segment: TransmuxedSegment) => void): void;
    on(event: "done", listener: () => void): void;
    push(bytes: Uint8Array): void;
    flush(): void;
    dispose(): void;
  }
  const muxjs: {
    mp4: { Transmuxer: new (options: { keepOriginalTimestamps: boolean; remux: boolean }) => Transmuxer };
  };

  // biome-ignore lint/style/noDefaultExport: mux.js has a default export
  export default muxjs;
}
