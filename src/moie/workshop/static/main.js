/* Starts the page: each part listens for what concerns it, then the connection is made. */

import "./store.js";
import "./live.js";
import "./player.js";
import "./band.js";
import "./experts.js";
import "./hands.js";
import "./whatif.js";
import "./map.js";
import "./tryout.js";
import "./messages.js";
import "./keys.js";
import { connect } from "./connection.js";

connect();
