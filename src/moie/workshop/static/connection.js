/* The one connection to the studio, which computes everything: messages go out by send and come in by on. */

const handlers = new Map();
const retries = [1000, 2000, 4000, 8000];
let socket = null, greeted = false, tried = 0;

/** Calls act with every message of this type, in the order in which the page's parts asked for it. */
export const on = (type, act) => {
  if (!handlers.has(type)) handlers.set(type, []);
  handlers.get(type).push(act);
};

/** Hands a message to the parts of the page, whether it came from the studio or from another part. */
export const tell = (message) => {
  for (const act of handlers.get(message.type) ?? []) act(message);
};

export const send = (message) => {
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
};

/** A frame: four bytes that say how long its header is, the header as JSON, then the picture. */
const frameOf = (bytes) => {
  const length = new DataView(bytes).getUint32(0);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
  return { type: "frame", header, picture: new Uint8Array(bytes, 4 + length) };
};

const receive = ({ data }) => {
  if (typeof data !== "string") return tell(frameOf(data));
  const message = JSON.parse(data);
  if (message.type === "hello") {
    if (greeted) return location.reload();
    greeted = true;
  }
  tell(message);
};

export const connect = () => {
  const address = new URL("live", location.href);
  address.protocol = "ws:";
  socket = new WebSocket(address);
  socket.binaryType = "arraybuffer";
  socket.addEventListener("message", receive);
  socket.addEventListener("close", () => {
    tell({ type: "lost" });
    if (tried < retries.length) setTimeout(connect, retries[tried++]);
  });
};
