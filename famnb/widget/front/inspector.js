// The inspector: one call, on a page of its own.

import { drawCall } from "./call.js";
import { describedWidget } from "./described.js";

export default () => describedWidget("Inspector", drawCall);
