// @ts-check
import { t } from "../parts/text.js";
/**
 * An element of `broadcast_list`.
 *
 * @typedef {object} Broadcast
 * @property {string} name
 * @property {string} title
 * @property {string | null} source
 * @property {keyof typeof STATES} status
 * @property {string} remark
 * @property {string | null} infohash
 * @property {string | null} link
 * @property {number | null} started_at UNIX seconds
 * @property {number} peers
 * @property {number} children
 * @property {number | null} bitrate bits per second
 * @property {number} speed_up bytes per second
 * @property {number} uploaded bytes
 * @property {string[]} publish_urls
 * @property {string | null} stream_key
 */

/** The name and the level of each status. */
export const STATES = {
  standby: [t("Standby"), "note"],
  waiting: [t("Waiting for the source"), "note"],
  good: [t("On air"), "ok"],
  silent: [t("No data from the source"), "fail"],
  late: [t("The source is too slow"), "warn"],
  forked: [t("Another machine broadcasts with this key"), "fail"],
  ended: [t("Ended"), "note"],
  failed: [t("Not on air; the engine tries again"), "fail"],
};
