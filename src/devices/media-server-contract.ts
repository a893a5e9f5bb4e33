/** A folder of the media server. */
export interface CatalogFolder {
  readonly kind: "folder";
  readonly id: string;
  readonly parentId: string;
  readonly title: string;
  readonly childCount: number;
}

/** A channel, a film or a recording of the media server. */
export interface CatalogItem {
  readonly kind: "film" | "channel";
  readonly id: string;
  readonly parentId: string;
  readonly title: string;
  readonly url: string;
  /** In bytes; undefined if unknown or endless. */
  readonly bytes?: number | undefined;
  readonly durationSeconds?: number | undefined;
  readonly pictureUrl?: string | undefined;
}

/** An object of the media server. */
export type CatalogEntry = CatalogFolder | CatalogItem;

/** One page of a folder. */
export interface CatalogPage {
  readonly total: number;
  readonly entries: readonly CatalogEntry[];
}

/** What the media server offers. The URLs in it are those of the address that the player called. */
export interface MediaCatalog {
  /** Returns an object by its id; undefined if there is none. */
  entry(id: string): Promise<CatalogEntry | undefined>;
  /** Returns the entries `[start, start + count)` of a folder; undefined if there is no such folder. */
  children(id: string, start: number, count: number): Promise<CatalogPage | undefined>;
}

/** The UPnP part of the media server: documents and calls, without HTTP. */
export interface MediaServer {
  /** The device description as XML. */
  description(): string;
  /** The description of a service as XML; undefined if there is no such service. */
  service(name: string): string | undefined;
  /** Answers a call (SOAP) of a service. `status` is 500 for an error of the service; undefined if there is no such service. */
  call(
    service: string,
    body: Uint8Array,
    catalog: MediaCatalog,
  ): Promise<{ readonly status: 200 | 500; readonly xml: string } | undefined>;
}
