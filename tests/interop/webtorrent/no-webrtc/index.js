// Stands in for the native WebRTC of webtorrent: these tests speak TCP only.
class Absent {
  constructor() {
    throw new Error("no WebRTC here");
  }
}
export const RTCPeerConnection = undefined;
export const RTCSessionDescription = Absent;
export const RTCIceCandidate = Absent;
export const RTCDataChannel = Absent;
