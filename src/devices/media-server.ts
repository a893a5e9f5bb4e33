import { DecodeError } from "../base/errors.ts";
import { didlDocument, didlFolder, didlItem, protocolInfo } from "../wire/upnp/media-renderer.ts";
import {
  featureList,
  type MediaServerFacts,
  type MediaServerService,
  mediaServerDescription,
  serviceDescription,
  serviceType,
} from "../wire/upnp/media-server.ts";
import { decodeSoapCall, encodeSoapError, encodeSoapResult, SOAP_ERRORS } from "../wire/upnp/soap.ts";
import type { CatalogEntry, MediaCatalog, MediaServer } from "./media-server-contract.ts";

/** Entries of one answer, about 50 kB: players of televisions hold it in memory, and ask for the next page. */
const MAX_PAGE = 100;
/** The type of everything that is offered: players list MPEG-TS under this name (DLNA guidelines 7.3.3). */
const MIME = "video/mpeg";

/** Values of one answer, in the order of the service description. */
type Values = readonly (readonly [name: string, value: string | number])[];

/** A call that the service refuses (UPnP error code). */
class Refusal extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * Creates the media server (ContentDirectory:1, ConnectionManager:1) with the additions of Samsung. `updateId` changes with each start of
 * the engine, so that players drop what they remember.
 */
export function createMediaServer(facts: MediaServerFacts, updateId: number): MediaServer {
  const answers: Readonly<
    Record<MediaServerService, (action: string, call: Call) => Promise<Values> | Values>
  > = {
    ContentDirectory: (action, call) => contentDirectory(action, call, updateId),
    ConnectionManager: connectionManager,
  };
  const isService = (name: string): name is MediaServerService => Object.hasOwn(answers, name);
  return {
    description: () => mediaServerDescription(facts),
    service: (name) => (isService(name) ? serviceDescription(name) : undefined),
    async call(service, body, catalog) {
      if (!isService(service)) return undefined;
      try {
        const { action, values } = decodeSoapCall(body);
        const result = await answers[service](action, { values, catalog });
        return { status: 200, xml: encodeSoapResult(serviceType(service), action, result) };
      } catch (thrown) {
        if (thrown instanceof DecodeError)
          return { status: 500, xml: encodeSoapError(SOAP_ERRORS.invalidArguments, thrown.message) };
        if (!(thrown instanceof Refusal)) throw thrown;
        return { status: 500, xml: encodeSoapError(thrown.code, thrown.message) };
      }
    },
  };
}

interface Call {
  readonly values: ReadonlyMap<string, string>;
  readonly catalog: MediaCatalog;
}

async function contentDirectory(action: string, call: Call, updateId: number): Promise<Values> {
  switch (action) {
    case "Browse":
      return browse(call, updateId);
    case "GetSearchCapabilities":
      return [["SearchCaps", ""]];
    case "GetSortCapabilities":
      return [["SortCaps", ""]];
    case "GetSystemUpdateID":
      return [["Id", updateId]];
    case "X_GetFeatureList":
      return [["FeatureList", featureList({ audio: "A", video: "V", images: "I" })]];
    default:
      throw unknownAction(action);
  }
}

async function browse({ values, catalog }: Call, updateId: number): Promise<Values> {
  // Some televisions send ContainerID, as in Search.
  const id = values.get("ObjectID") || values.get("ContainerID") || "0";
  const isMetadata = values.get("BrowseFlag") === "BrowseMetadata";
  const start = numberOf(values.get("StartingIndex"));
  // A count of 0 asks for everything (ContentDirectory:1 2.7.4.2).
  const count = Math.min(numberOf(values.get("RequestedCount")) || MAX_PAGE, MAX_PAGE);
  const entry = isMetadata ? await catalog.entry(id) : undefined;
  const page = isMetadata
    ? entry && { total: 1, entries: [entry] }
    : await catalog.children(id, start, count);
  if (page === undefined) throw new Refusal(SOAP_ERRORS.noSuchObject, "no such object");
  return [
    ["Result", didlDocument(page.entries.map(elementOf))],
    ["NumberReturned", page.entries.length],
    ["TotalMatches", page.total],
    ["UpdateID", updateId],
  ];
}

function elementOf(entry: CatalogEntry): string {
  if (entry.kind === "folder") return didlFolder(entry);
  return didlItem({ ...entry, protocolInfo: protocolInfo(MIME, entry.kind === "channel") });
}

function connectionManager(action: string): Values {
  switch (action) {
    case "GetProtocolInfo":
      return [
        ["Source", `http-get:*:${MIME}:*`],
        ["Sink", ""],
      ];
    case "GetCurrentConnectionIDs":
      return [["ConnectionIDs", "0"]];
    case "GetCurrentConnectionInfo":
      return [
        ["RcsID", -1],
        ["AVTransportID", -1],
        ["ProtocolInfo", `http-get:*:${MIME}:*`],
        ["PeerConnectionManager", ""],
        ["PeerConnectionID", -1],
        ["Direction", "Output"],
        ["Status", "OK"],
      ];
    default:
      throw unknownAction(action);
  }
}

function unknownAction(action: string): Refusal {
  return new Refusal(SOAP_ERRORS.invalidAction, `${action.slice(0, 60)} is not supported`);
}

function numberOf(text = ""): number {
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}
