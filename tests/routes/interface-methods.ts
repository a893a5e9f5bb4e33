/** A control method as the interface's tables list it. */
export interface InterfaceMethod {
  readonly name: string;
  readonly isPublic: boolean;
  readonly isRemote: boolean;
  /** Required parameters with valid values. */
  readonly required: Readonly<Record<string, string>>;
  readonly section: "service" | "playlist" | "external" | "account";
}

const ID = "1";
const OWNER = "_no_owner_";

/** The 38 methods of the interface (Control API), copied from its tables, not from the code. */
export const INTERFACE_METHODS: readonly InterfaceMethod[] = [
  service("get_api_access_token", { isRemote: false }),
  service("set_allow_remote_access", { isPublic: false, isRemote: false }, { value: "1" }),
  service("set_allow_intranet_access", { isPublic: false, isRemote: false }, { value: "1" }),
  service("get_available_players"),
  service("open_in_player"),
  service("get_media_files"),
  service("get_content_id"),
  service("get_channel_icon"),
  service("analyze_content", {}, { query: "q" }),
  service("analyze_content_multi", {}, { query: "q" }),
  service("analyze_deferred_playlist_items"),
  service("get_status"),
  service("get_network_connection_status"),
  service("parse_m3u_playlist", {}, { url: "http://192.0.2.1/list.m3u" }),
  playlist("playlist_add_item"),
  playlist("playlist_update_item", { id: ID }),
  playlist("playlist_delete_item", { id: ID }),
  playlist("playlist_delete_items", { owner: OWNER, ids: ID }),
  playlist("playlist_restore_item", { owner: OWNER, id: ID }),
  playlist("playlist_trash_get", { owner: OWNER }),
  playlist("playlist_trash_clear"),
  playlist("playlist_get"),
  playlist("playlist_clear", { owner: OWNER }),
  playlist("playlist_item_set_favorite", { id: ID, value: "1" }),
  playlist("playlist_item_set_enabled", { id: ID, value: "1" }),
  playlist("playlist_items_set_enabled", { ids: ID, value: "1" }),
  playlist("playlist_item_set_locked", { id: ID, value: "1" }),
  playlist("playlist_item_set_auto_search", { id: ID, value: "1", owner: OWNER }),
  playlist("playlist_import"),
  external("external_playlist_add", {
    type: "content",
    category: "tv",
    name: "list",
    url: "http://192.0.2.1/list.m3u",
    update_interval: "3600",
  }),
  external("external_playlist_delete", { id: ID }),
  external("external_playlist_update", { id: ID }),
  external("external_playlist_edit", { id: ID, category: "tv", name: "list", update_interval: "3600" }),
  external("external_playlist_get"),
  external("update_all_external_playlists"),
  account("check_auth"),
  account("sign_in"),
  account("sign_out"),
];

type Parameters = InterfaceMethod["required"];

function service(
  name: string,
  flags: { isPublic?: boolean; isRemote?: boolean } = {},
  required: Parameters = {},
): InterfaceMethod {
  return { name, isPublic: true, isRemote: true, ...flags, required, section: "service" };
}

/** "All non-public, remote allowed", like those below. */
function playlist(name: string, required: Parameters = {}): InterfaceMethod {
  return { name, isPublic: false, isRemote: true, required, section: "playlist" };
}

function external(name: string, required: Parameters = {}): InterfaceMethod {
  return { ...playlist(name, required), section: "external" };
}

function account(name: string): InterfaceMethod {
  return { ...playlist(name), section: "account" };
}
