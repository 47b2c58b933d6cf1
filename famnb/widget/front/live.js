// The live view of calls that a cell waits for.

import { liveWidget } from "./stream.js";

export default () => liveWidget();
