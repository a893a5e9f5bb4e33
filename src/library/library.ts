import type {
  AccessControl,
  Accounts,
  ExportOptions,
  ExternalPlaylists,
  Images,
  ImportOptions,
  Items,
  Tasks,
} from "./contract.ts";

/** What is remembered: the user's lists, other people's lists, who may ask. The routes see this and nothing below it. */
export interface Library {
  readonly items: Items;
  readonly externalPlaylists: ExternalPlaylists;
  readonly tasks: Tasks;
  readonly access: AccessControl;
  readonly accounts: Accounts;
  readonly images: Images;
  /**
   * Imports a playlist in the background and resolves to the task as soon as the body has been read far enough to know
   * that it is one; rejects with `not_a_playlist`. The body is read to its end before it resolves, so that it may be a request's.
   */
  importPlaylist(body: ReadableStream<Uint8Array>, options: ImportOptions): Promise<number>;
  /** The items as a playlist, written while it is read. */
  exportPlaylist(options: ExportOptions): ReadableStream<Uint8Array>;
  /** The URLs of the programme guides that a playlist elsewhere names. */
  guidesOf(
    url: string,
    options: { readonly allowPrivateUrls: boolean; readonly signal?: AbortSignal },
  ): Promise<string[]>;
  /** Ends refreshes and imports, and makes everything safe. */
  close(): Promise<void>;
}
