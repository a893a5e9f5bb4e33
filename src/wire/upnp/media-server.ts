import { escapeXml } from "../../base/escape-xml.ts";

/** The services of the media server. */
export type MediaServerService = "ContentDirectory" | "ConnectionManager";

/** Facts about this media server. */
export interface MediaServerFacts {
  /** The unique device name, `uuid:…`. */
  readonly udn: string;
  readonly name: string;
  readonly version: string;
}

/** The device type of a media server. */
export const MEDIA_SERVER = "urn:schemas-upnp-org:device:MediaServer:1";

/** The type of a service. */
export function serviceType(service: MediaServerService): string {
  return `urn:schemas-upnp-org:service:${service}:1`;
}

/** Builds the device description; the services are below `/dlna/`. `sec:ProductCap` makes televisions of Samsung show the server. */
export function mediaServerDescription({ udn, name, version }: MediaServerFacts): string {
  const service = (kind: MediaServerService) =>
    `<service><serviceType>${serviceType(kind)}</serviceType><serviceId>urn:upnp-org:serviceId:${kind}</serviceId>` +
    `<SCPDURL>/dlna/${kind}.xml</SCPDURL><controlURL>/dlna/control/${kind}</controlURL><eventSubURL></eventSubURL></service>`;
  return document(
    '<root xmlns="urn:schemas-upnp-org:device-1-0" xmlns:dlna="urn:schemas-dlna-org:device-1-0" xmlns:sec="http://www.sec.co.kr/dlna">' +
      "<specVersion><major>1</major><minor>0</minor></specVersion><device>" +
      `<deviceType>${MEDIA_SERVER}</deviceType><friendlyName>${escapeXml(name)}</friendlyName>` +
      `<manufacturer>Sluice</manufacturer><modelName>Sluice</modelName><modelNumber>${escapeXml(version)}</modelNumber>` +
      `<UDN>${escapeXml(udn)}</UDN><dlna:X_DLNADOC>DMS-1.50</dlna:X_DLNADOC>` +
      "<sec:ProductCap>smi,DCM10,getMediaInfo.sec,getCaptionInfo.sec</sec:ProductCap>" +
      `<presentationURL>/</presentationURL><serviceList>${service("ContentDirectory")}${service("ConnectionManager")}</serviceList>` +
      "</device></root>",
  );
}

/** The arguments of each action: inputs, then outputs; each with its state variable (ContentDirectory:1 2.7, ConnectionManager:1 2.4). */
const ACTIONS: Readonly<Record<MediaServerService, Readonly<Record<string, readonly [string, string]>>>> = {
  ContentDirectory: {
    Browse: [
      "ObjectID:A_ARG_TYPE_ObjectID BrowseFlag:A_ARG_TYPE_BrowseFlag Filter:A_ARG_TYPE_Filter StartingIndex:A_ARG_TYPE_Index RequestedCount:A_ARG_TYPE_Count SortCriteria:A_ARG_TYPE_SortCriteria",
      "Result:A_ARG_TYPE_Result NumberReturned:A_ARG_TYPE_Count TotalMatches:A_ARG_TYPE_Count UpdateID:A_ARG_TYPE_UpdateID",
    ],
    GetSearchCapabilities: ["", "SearchCaps:SearchCapabilities"],
    GetSortCapabilities: ["", "SortCaps:SortCapabilities"],
    GetSystemUpdateID: ["", "Id:SystemUpdateID"],
    X_GetFeatureList: ["", "FeatureList:A_ARG_TYPE_Featurelist"],
  },
  ConnectionManager: {
    GetProtocolInfo: ["", "Source:SourceProtocolInfo Sink:SinkProtocolInfo"],
    GetCurrentConnectionIDs: ["", "ConnectionIDs:CurrentConnectionIDs"],
    GetCurrentConnectionInfo: [
      "ConnectionID:A_ARG_TYPE_ConnectionID",
      "RcsID:A_ARG_TYPE_RcsID AVTransportID:A_ARG_TYPE_AVTransportID ProtocolInfo:A_ARG_TYPE_ProtocolInfo PeerConnectionManager:A_ARG_TYPE_ConnectionManager PeerConnectionID:A_ARG_TYPE_ConnectionID Direction:A_ARG_TYPE_Direction Status:A_ARG_TYPE_ConnectionStatus",
    ],
  },
};

/** State variables that are numbers, and those with a list of values; all others are texts. */
const NUMBERS = /(?:Index|Count|UpdateID|SystemUpdateID)$/;
const SIGNED = /(?:ConnectionID|RcsID|AVTransportID)$/;
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  A_ARG_TYPE_BrowseFlag: ["BrowseMetadata", "BrowseDirectChildren"],
  A_ARG_TYPE_Direction: ["Input", "Output"],
  A_ARG_TYPE_ConnectionStatus: ["OK", "Unknown"],
};

/** Builds the description of a service (UPnP Device Architecture 1.0, section 2.3). No variable sends events. */
export function serviceDescription(service: MediaServerService): string {
  const variables = new Set<string>();
  const argumentsOf = (list: string, direction: "in" | "out") =>
    list
      .split(" ")
      .filter((pair) => pair !== "")
      .map((pair) => {
        const [name = "", variable = ""] = pair.split(":");
        variables.add(variable);
        return `<argument><name>${name}</name><direction>${direction}</direction><relatedStateVariable>${variable}</relatedStateVariable></argument>`;
      })
      .join("");
  const actions = Object.entries(ACTIONS[service])
    .map(
      ([name, [inputs, outputs]]) =>
        `<action><name>${name}</name><argumentList>${argumentsOf(inputs, "in")}${argumentsOf(outputs, "out")}</argumentList></action>`,
    )
    .join("");
  const table = [...variables].map((name) => {
    const type = SIGNED.test(name) ? "i4" : NUMBERS.test(name) ? "ui4" : "string";
    const allowed = (ALLOWED[name] ?? []).map((value) => `<allowedValue>${value}</allowedValue>`).join("");
    const list = allowed && `<allowedValueList>${allowed}</allowedValueList>`;
    return `<stateVariable sendEvents="no"><name>${name}</name><dataType>${type}</dataType>${list}</stateVariable>`;
  });
  return document(
    '<scpd xmlns="urn:schemas-upnp-org:service-1-0"><specVersion><major>1</major><minor>0</minor></specVersion>' +
      `<actionList>${actions}</actionList><serviceStateTable>${table.join("")}</serviceStateTable></scpd>`,
  );
}

/** The answer to Samsung's `X_GetFeatureList`: which containers hold which kind of media. */
export function featureList(containers: {
  readonly audio: string;
  readonly video: string;
  readonly images: string;
}): string {
  const container = (id: string, type: string) =>
    `<container id="${escapeXml(id)}" type="object.item.${type}"/>`;
  return (
    '<Features xmlns="urn:schemas-upnp-org:av:avs" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" ' +
    'xsi:schemaLocation="urn:schemas-upnp-org:av:avs http://www.upnp.org/schemas/av/avs.xsd">' +
    `<Feature name="samsung.com_BASICVIEW" version="1">${container(containers.audio, "audioItem")}` +
    `${container(containers.video, "videoItem")}${container(containers.images, "imageItem")}</Feature></Features>`
  );
}

function document(body: string): string {
  return `<?xml version="1.0" encoding="utf-8"?>\n${body}\n`;
}
