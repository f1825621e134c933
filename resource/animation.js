// Copyright 2026 The state_sensor_ros maintainers
// SPDX-License-Identifier: Apache-2.0
//
// Moves the boxes of a page that animation.py wrote. Between two instants of the recording
// positions are interpolated, but for an actor that jumps or leaves.
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const { scene, parts, colors } = data;

  const unpack = (Type, text) => new Type(
    Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
  const times = unpack(Float64Array, scene.time_s);
  const rowStart = unpack(Int32Array, scene.row_start);
  const actorOf = unpack(Int32Array, scene.actor);
  const positions = unpack(Float32Array, scene.position_xy);
  const yaws = unpack(Float32Array, scene.yaw);
  const speeds = unpack(Float32Array, scene.speed);
  const laneOf = unpack(Int32Array, scene.lane);
  const displayOf = unpack(Int32Array, scene.display);
  const footprints = unpack(Float32Array, scene.footprint_xy);
  const duration = times.length ? times[times.length - 1] : 0;

  // The colors end with those of unknown speed, objects and the ego.
  const nScale = colors.length - 3;
  const [UNKNOWN, OBJECT, EGO] = [nScale, nScale + 1, nScale + 2];
  // Where a pixel is longer than this, m, a box is too small to be seen and gets a dot.
  const DOTS_ABOVE = 0.6;
  const FOLLOW_M = 60;
  // plotly reports a turn of the wheel after a pause, ms.
  const WHEEL_MS = 250;
  // Pixels at the sides of both figures, as in their layout.
  const MARGIN_LEFT = data.strip.layout.margin.l;
  const MARGINS = MARGIN_LEFT + data.strip.layout.margin.r;

  const element = (id) => document.getElementById(id);
  const [map, strip, cursor, tip, key, play, slider, clock, pace, names, follow] = [
    'map', 'strip', 'cursor', 'tip', 'key', 'play', 'time', 'clock', 'pace', 'names', 'follow',
  ].map(element);

  // The last instant that is not after `time`.
  const instantAt = (time) => {
    let [low, high] = [0, times.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (times[middle] <= time) low = middle; else high = middle - 1;
    }
    return low;
  };

  const nextRow = new Int32Array(scene.names.length).fill(-1);

  // Calls visit(actor, row, x, y, yaw, speed) for each actor that is present at `time`.
  const visitAll = (time, visit) => {
    if (!times.length) return;
    const i = instantAt(time);
    const nextEnd = i + 1 < times.length ? rowStart[i + 2] : rowStart[i + 1];
    const period = i + 1 < times.length ? times[i + 1] - times[i] : 1;
    const share = Math.min((time - times[i]) / period, 1);
    for (let row = rowStart[i + 1]; row < nextEnd; row += 1) nextRow[actorOf[row]] = row;
    for (let row = rowStart[i]; row < rowStart[i + 1]; row += 1) {
      const next = nextRow[actorOf[row]];
      let [x, y, yaw, speed] = [positions[2 * row], positions[2 * row + 1], yaws[row],
        speeds[row]];
      if (next >= 0) {
        const [dx, dy] = [positions[2 * next] - x, positions[2 * next + 1] - y];
        const reach = data.jump.m + data.jump.factor * (speed || 0) * period;
        if (Math.hypot(dx, dy) <= reach || Number.isNaN(speed)) {
          const turn = yaws[next] - yaw;
          x += share * dx;
          y += share * dy;
          yaw += share * Math.atan2(Math.sin(turn), Math.cos(turn));
          speed += share * (speeds[next] - speed);
        }
      }
      visit(actorOf[row], row, x, y, yaw, speed);
    }
    for (let row = rowStart[i + 1]; row < nextEnd; row += 1) nextRow[actorOf[row]] = -1;
  };

  const classOf = (actor, speed) => {
    if (scene.is_ego[actor]) return EGO;
    if (!scene.is_vehicle[actor]) return OBJECT;
    if (data.colors_of_actors) return data.colors_of_actors[actor];
    if (!Number.isFinite(speed)) return UNKNOWN;
    const [low, high] = data.speed_range;
    const k = Math.floor((speed - low) / (high - low) * nScale);
    return Math.min(Math.max(k, 0), nScale - 1);
  };

  // A light's color, a sign's number or kind, or what moves.
  const describe = (actor, row, speed) => {
    const display = scene.displays[displayOf[row]];
    const kind = scene.kinds[actor];
    let state = Number.isFinite(speed)
      ? `${speed.toFixed(1)} m/s, ${(3.6 * speed).toFixed(1)} km/h` : 'speed unknown';
    if (kind === 'traffic light') state = display || 'state unknown';
    if (kind === 'speed limit sign') state = display ? `${display} km/h` : 'limit unknown';
    if (kind === 'traffic sign') state = kind;
    const lane = scene.lanes[laneOf[row]];
    const where = lane ? `<br>road ${lane[0]}, section ${lane[1]}, lane ${lane[2]}` : '';
    const size = scene.has_size[actor] || data.symbols[kind] ? '' : '<br>size assumed';
    return `<b>${scene.names[actor]}</b><br>${state}${where}${size}`;
  };

  const overlap = (a, b) => a.left < b.right && b.left < a.right && a.bottom < b.top
    && b.bottom < a.top;
  const clipped = (box, view) => ({
    left: Math.max(box.left, view.left), bottom: Math.max(box.bottom, view.bottom),
    right: Math.min(box.right, view.right), top: Math.min(box.top, view.top) });
  const scaled = ({ left, bottom, right, top }, factor) => ({
    left: left * factor, bottom: bottom * factor, right: right * factor, top: top * factor });

  // Boxes in pixels by the cells of a grid, so that few are compared with each other.
  const CELL_PX = 64;
  const newGrid = () => {
    const cells = new Map();
    const someCell = (box, visit) => {
      const [last, highest] = [Math.floor(box.right / CELL_PX), Math.floor(box.top / CELL_PX)];
      for (let i = Math.floor(box.left / CELL_PX); i <= last; i += 1) {
        for (let j = Math.floor(box.bottom / CELL_PX); j <= highest; j += 1) {
          if (visit(`${i} ${j}`)) return true;
        }
      }
      return false;
    };
    return {
      add: (box) => someCell(box, (key) => {
        if (!cells.has(key)) cells.set(key, []);
        cells.get(key).push(box);
        return false;
      }),
      hits: (box, own) => someCell(box, (key) => (cells.get(key) || []).some(
        (other) => other !== own && overlap(box, other))),
    };
  };

  // Where a name can be, in pixels from the left bottom corner: beside `box`, or a line further.
  const NAME_HEIGHT = 13;
  const NAME_FONT = data.name_font;
  const PLACES = [
    [0, 1, 0], [0, -1, 0], [1, 0, 0], [-1, 0, 0], [0, 1, 1], [0, -1, 1], [0, 1, 2], [0, -1, 2],
  ].map(
    ([right, up, lines]) => ({
      position: up ? `${up > 0 ? 'top' : 'bottom'} center`
        : `middle ${right > 0 ? 'right' : 'left'}`,
      // The place in the map to which plotly attaches the name.
      anchor: ({ left, bottom, right: end, top }) => [
        right ? (right > 0 ? end : left) : (left + end) / 2,
        up ? (up > 0 ? top : bottom) + up * lines * NAME_HEIGHT : (bottom + top) / 2],
      around: ([x, y], width) => {
        const left = right ? (right > 0 ? x : x - width) : x - width / 2;
        const bottom = up ? (up > 0 ? y : y - NAME_HEIGHT) : y - NAME_HEIGHT / 2;
        return { left, bottom, right: left + width, top: bottom + NAME_HEIGHT };
      },
    }));
  // That of each actor at the last instant: a name stays where it is while that is free.
  const placeOf = new Int8Array(scene.names.length);
  const wasNamed = new Uint8Array(scene.names.length);
  const ruler = document.createElement('canvas').getContext('2d');
  ruler.font = NAME_FONT;
  const widths = [];
  // With the halo and the gap to the actor.
  const widthOf = (actor) => {
    widths[actor] ??= ruler.measureText(scene.names[actor]).width + 8;
    return widths[actor];
  };

  // Calls label(x, y, text, position) for each of `named`, { actor, isEgo, own }, whose name has a
  // free place in `view` beside its box: neither names nor actors are covered. First the ego's,
  // then those that were there. In pixels.
  const placeNames = (named, view, actors, taken, label) => {
    named.sort((a, b) => b.isEgo - a.isEgo || wasNamed[b.actor] - wasNamed[a.actor]);
    wasNamed.fill(0);
    for (const { actor, own } of named) {
      for (const k of [placeOf[actor], ...PLACES.keys()]) {
        const anchor = PLACES[k].anchor(own);
        const box = PLACES[k].around(anchor, widthOf(actor));
        const isInView = box.left >= view.left && box.right <= view.right
          && box.bottom >= view.bottom && box.top <= view.top;
        if (isInView && !actors.hits(box, own) && !taken.hits(box)) {
          taken.add(box);
          [placeOf[actor], wasNamed[actor]] = [k, 1];
          label(...anchor, scene.names[actor], PLACES[k].position);
          break;
        }
      }
    }
  };

  // The marks of lane changes that cover neither an actor nor another mark; in pixels.
  const MARK_PX = 7;
  const freeChanges = (pixel, view, actors) => {
    const taken = newGrid();
    return data.changes.filter(({ x, y, end_x: u, end_y: v }) => {
      const box = {
        left: Math.min(x, u) / pixel - MARK_PX, right: Math.max(x, u) / pixel + MARK_PX,
        bottom: Math.min(y, v) / pixel - MARK_PX, top: Math.max(y, v) / pixel + MARK_PX };
      if (!overlap(box, view)) return false;
      const cut = clipped(box, view);
      if (actors.hits(cut) || taken.hits(cut)) return false;
      taken.add(cut);
      return true;
    });
  };

  // Corners of the closed polygon `points` (u, v) in the axes of a road user at x, y, yaw.
  // Returns the box around it.
  const addShape = (trace, points, x, y, yaw) => {
    const [cos, sin] = [Math.cos(yaw), Math.sin(yaw)];
    for (const [u, v] of points) {
      trace.x.push(x + cos * u - sin * v);
      trace.y.push(y + sin * u + cos * v);
    }
    const [xs, ys] = [trace.x.slice(-points.length), trace.y.slice(-points.length)];
    trace.x.push(null);
    trace.y.push(null);
    return { left: Math.min(...xs), bottom: Math.min(...ys), right: Math.max(...xs),
      top: Math.max(...ys) };
  };

  // The outline of each actor, an arrow head at its front, and its middle; its own axes.
  const shapes = scene.names.map((_, actor) => {
    const corners = [0, 1, 2, 3].map((k) => [
      footprints[8 * actor + 2 * k], footprints[8 * actor + 2 * k + 1]]);
    const [a, b, c] = corners;
    const middle = [(a[0] + c[0]) / 2, (a[1] + c[1]) / 2];
    const front = [(a[0] + b[0]) / 2 - middle[0], (a[1] + b[1]) / 2 - middle[1]];
    const left = [(a[0] - b[0]) / 2, (a[1] - b[1]) / 2];
    const at = (f, l) => [middle[0] + f * front[0] + l * left[0],
      middle[1] + f * front[1] + l * left[1]];
    return {
      outline: [...corners, corners[0]],
      head: [at(0.75, 0), at(0.2, 0.6), at(0.2, -0.6), at(0.75, 0)],
      middle,
    };
  });

  // A copy: plotly writes the arrays of each update into the traces that it is given.
  const plainEdge = { ...data.map.data[parts.points].marker.line };
  const { size: _, angle: __, ...changeMark } = data.map.data[parts.changes].marker;
  // What the traces of the map hold at `time`, in the order of `filled`, and where the ego is;
  // `pixel` is the length of a pixel, m.
  const filled = [...parts.classes, parts.outlines, parts.assumed, parts.fronts, parts.points,
    parts.labels, parts.changes];
  const snapshot = (time, pixel) => {
    const isFar = pixel > DOTS_ABOVE;
    const fills = colors.map(() => ({ x: [], y: [] }));
    const [outlines, assumed, fronts] = [0, 1, 2].map(() => ({ x: [], y: [] }));
    const labels = { x: [], y: [], text: [], textposition: [] };
    const dots = [];
    const boxes = [];
    const numbers = [];
    let ego = null;
    const label = (x, y, text, place) => {
      labels.x.push(x);
      labels.y.push(y);
      labels.text.push(text);
      labels.textposition.push(place);
    };
    visitAll(time, (actor, row, x, y, yaw, speed) => {
      const shape = shapes[actor];
      const isEgo = scene.is_ego[actor];
      const symbol = isEgo ? undefined : data.symbols[scene.kinds[actor]];
      const display = scene.displays[displayOf[row]];
      const [u, v] = symbol ? [0, 0] : shape.middle;
      const dot = {
        x: x + Math.cos(yaw) * u - Math.sin(yaw) * v,
        y: y + Math.sin(yaw) * u + Math.cos(yaw) * v,
        text: describe(actor, row, speed), isEgo,
      };
      let box = { left: dot.x, bottom: dot.y, right: dot.x, top: dot.y };
      if (symbol) {
        const fill = symbol.fills[display] || symbol.fills[''];
        Object.assign(dot, { color: fill, size: symbol.size, edge: symbol.edge, opacity: 1 });
        if (scene.kinds[actor] === 'speed limit sign') {
          numbers.push({ x: dot.x, y: dot.y, text: display || '?', radius: symbol.size / 2 });
        }
      } else {
        const kind = classOf(actor, speed);
        box = addShape(fills[kind], shape.outline, x, y, yaw);
        addShape(scene.has_size[actor] ? outlines : assumed, shape.outline, x, y, yaw);
        if ((scene.is_vehicle[actor] || isEgo) && !isFar) addShape(fronts, shape.head, x, y, yaw);
        Object.assign(dot, {
          color: colors[kind], size: { [EGO]: 12, [OBJECT]: 6 }[kind] || 9,
          edge: plainEdge, opacity: isFar ? 1 : 0,
        });
      }
      dots.push(dot);
      const radius = dot.opacity ? pixel * dot.size / 2 : 0;
      boxes.push({ actor, isEgo, box: scaled({
        left: Math.min(box.left, dot.x - radius), bottom: Math.min(box.bottom, dot.y - radius),
        right: Math.max(box.right, dot.x + radius), top: Math.max(box.top, dot.y + radius),
      }, 1 / pixel) });
      if (isEgo) ego = [x, y];
    });
    const view = scaled(viewOf(ego), 1 / pixel);
    const [actors, taken] = [newGrid(), newGrid()];
    const named = boxes.filter(({ box }) => overlap(box, view));
    for (const each of named) {
      each.own = clipped(each.box, view);
      actors.add(each.own);
    }
    for (const { x, y, text, radius } of numbers) {
      const box = { left: x / pixel - radius, right: x / pixel + radius,
        bottom: y / pixel - radius, top: y / pixel + radius };
      if (!overlap(box, view) || taken.hits(box)) continue;
      taken.add(box);
      label(x, y, text, 'middle center');
    }
    if (names.checked) {
      placeNames(named, view, actors, taken, (x, y, text, place) => {
        label(x * pixel, y * pixel, text, place);
      });
    }
    const changes = { x: [], y: [], text: [], marker: { size: [], angle: [] } };
    for (const each of freeChanges(pixel, view, actors)) {
      changes.x.push(each.x, each.end_x, null);
      changes.y.push(each.y, each.end_y, null);
      // At both ends: plotly shows an empty box for a point without text.
      changes.text.push(each.text, each.text, '');
      changes.marker.size.push(0, 10, 0);
      changes.marker.angle.push(0, each.angle, 0);
    }
    Object.assign(changes.marker, changeMark);
    // The ego on top of all others: the last one.
    dots.sort((a, b) => a.isEgo - b.isEgo);
    const each = (name) => dots.map((dot) => dot[name]);
    const points = {
      x: each('x'), y: each('y'), text: each('text'),
      marker: {
        color: each('color'), size: each('size'), opacity: each('opacity'),
        line: {
          color: dots.map((dot) => dot.edge.color || dot.edge[0]),
          width: dots.map((dot) => dot.edge.width || dot.edge[1]),
        },
      },
    };
    return { traces: [...fills, outlines, assumed, fronts, points, labels, changes], ego };
  };

  // While the view follows the ego: half of its width, m, and the place of its center from the
  // ego, m. Zooming and panning change these.
  const FOLLOWING = { half: FOLLOW_M, offset: [0, 0] };
  let following = { ...FOLLOWING };
  const around = ([x, y]) => {
    const { half, offset: [dx, dy] } = following;
    const { l, r, t, b } = data.map.layout.margin;
    const shape = (map.clientHeight - t - b) / Math.max(map.clientWidth - l - r, 1);
    return {
      'xaxis.range': [x + dx - half, x + dx + half],
      'yaxis.range': [y + dy - half * shape, y + dy + half * shape],
    };
  };

  // The part of the world that the map shows.
  const viewOf = (ego) => {
    const ranges = follow.checked && ego ? around(ego) : {
      'xaxis.range': map.layout.xaxis.range, 'yaxis.range': map.layout.yaxis.range };
    const [[left, right], [bottom, top]] = [ranges['xaxis.range'], ranges['yaxis.range']];
    return { left, right, bottom, top };
  };

  const metersPerPixel = () => {
    const [low, high] = map.layout.xaxis.range;
    const width = follow.checked ? 2 * following.half : high - low;
    return width / Math.max(map.clientWidth - MARGINS, 1);
  };

  // plotly writes into the layout that it is given: copies.
  const [wholeX, wholeY] = [[...data.map.layout.xaxis.range], [...data.map.layout.yaxis.range]];
  const extent = Math.max(wholeX[1] - wholeX[0], wholeY[1] - wholeY[0]);

  let now = data.start_s;
  let isDrawing = false;
  let egoNow = null;
  // The user moves the map until this time, ms: it must not be drawn elsewhere meanwhile.
  let heldUntil = 0;
  const hold = (durationMs) => {
    heldUntil = performance.now() + durationMs;
    if (Number.isFinite(durationMs)) setTimeout(draw, durationMs + 1);
  };

  const drawMap = async () => {
    const { traces, ego } = snapshot(now, metersPerPixel());
    egoNow = ego;
    const each = (name) => traces.map((trace) => trace[name]);
    await Plotly.update(
      map, { x: each('x'), y: each('y'), text: each('text'), marker: each('marker'),
        textposition: each('textposition') },
      follow.checked && ego ? around(ego) : {}, filled);
  };

  const draw = async () => {
    if (isDrawing) return;
    isDrawing = true;
    try {
      if (performance.now() >= heldUntil) await drawMap();
    } finally {
      isDrawing = false;
    }
    cursor.style.left = `${MARGIN_LEFT + now / (duration || 1) * (strip.clientWidth - MARGINS)}px`;
    slider.value = String(now);
    clock.value = `${now.toFixed(2)} / ${Number(duration.toFixed(2))} s`;
  };

  let isPlaying = false;
  let lastTick = 0;

  const setPlaying = (wanted) => {
    isPlaying = wanted && duration > 0;
    play.textContent = isPlaying ? 'Pause' : 'Play';
    if (!isPlaying) return;
    if (now >= duration) now = 0;
    lastTick = performance.now();
    requestAnimationFrame(tick);
  };

  // By the clock on the wall: a slow browser shows fewer steps, not a slower world.
  const tick = async (wall) => {
    if (!isPlaying) return;
    now = Math.min(now + Math.max(wall - lastTick, 0) / 1000 * Number(pace.value), duration);
    lastTick = wall;
    await draw();
    if (now >= duration) setPlaying(false);
    if (isPlaying) requestAnimationFrame(tick);
  };

  const seek = (time) => {
    now = Math.min(Math.max(time, 0), duration);
    if (!isPlaying) draw();
  };

  const step = (n) => {
    setPlaying(false);
    const i = Math.min(Math.max(instantAt(now) + n, 0), times.length - 1);
    seek(times[i] || 0);
  };

  play.addEventListener('click', () => setPlaying(!isPlaying));
  slider.addEventListener('input', () => seek(Number(slider.value)));
  names.addEventListener('change', () => draw());
  follow.addEventListener('change', async () => {
    following = { ...FOLLOWING };
    if (!follow.checked) {
      await Plotly.relayout(map, { 'xaxis.range': wholeX, 'yaxis.range': wholeY });
    }
    draw();
  });
  document.addEventListener('keydown', (event) => {
    if (event.target.tagName === 'SELECT') return;
    const action = {
      ' ': () => setPlaying(!isPlaying), ArrowRight: () => step(1), ArrowLeft: () => step(-1),
    }[event.key];
    if (action) {
      event.preventDefault();
      action();
    }
  });

  // The user has zoomed or panned. While the view follows the ego, it goes on with this part.
  const keepView = (change) => {
    if (!Object.keys(change).some((key) => key.startsWith('xaxis'))) return;
    heldUntil = 0;
    if (follow.checked && egoNow) {
      const [x, y] = [map.layout.xaxis.range, map.layout.yaxis.range];
      const isWhole = Math.abs(x[0] - wholeX[0]) + Math.abs(x[1] - wholeX[1]) < 1e-6 * extent;
      following = isWhole ? { ...FOLLOWING } : {
        half: (x[1] - x[0]) / 2,
        offset: [(x[0] + x[1]) / 2 - egoNow[0], (y[0] + y[1]) / 2 - egoNow[1]],
      };
    }
    // Zooming in or out turns dots to boxes and back.
    if (!isPlaying) draw();
  };

  // The name of the line of speed that is nearest to the pointer.
  const TIP_PX = 10;
  const showTip = (event) => {
    const { left, top } = strip.getBoundingClientRect();
    const { t, b } = data.strip.layout.margin;
    const time = (event.clientX - left - MARGIN_LEFT) / (strip.clientWidth - MARGINS) * duration;
    const [low, high] = data.strip.layout.yaxis.range;
    const perPixel = (high - low) / (strip.clientHeight - t - b);
    const wanted = high - (event.clientY - top - t) * perPixel;
    let [nearest, least, found] = [-1, TIP_PX * perPixel, NaN];
    if (time >= 0 && time <= duration) {
      visitAll(time, (actor, row, x, y, yaw, speed) => {
        if (scene.moves[actor] && Math.abs(speed - wanted) < least) {
          [nearest, least, found] = [actor, Math.abs(speed - wanted), speed];
        }
      });
    }
    tip.hidden = nearest < 0;
    if (nearest < 0) return;
    // Names are escaped.
    tip.innerHTML = `<b>${scene.names[nearest]}</b> ${found.toFixed(1)} m/s`;
    tip.style.left = `${Math.min(event.clientX - left + 12, strip.clientWidth - 200)}px`;
    tip.style.top = `${event.clientY - top - 28}px`;
  };

  const begin = async () => {
    await Plotly.newPlot(map, data.map.data, data.map.layout, data.config);
    await Plotly.newPlot(strip, data.strip.data, data.strip.layout,
      { ...data.config, displayModeBar: false, scrollZoom: false });
    map.on('plotly_relayout', keepView);
    map.addEventListener('pointerdown', () => hold(Infinity));
    window.addEventListener('pointerup', () => hold(WHEEL_MS));
    window.addEventListener('pointercancel', () => hold(0));
    map.addEventListener('wheel', () => hold(WHEEL_MS), { passive: true, capture: true });
    strip.addEventListener('click', (event) => {
      const x = event.clientX - strip.getBoundingClientRect().left - MARGIN_LEFT;
      seek(x / (strip.clientWidth - MARGINS) * duration);
    });
    strip.addEventListener('pointermove', (event) => showTip(event));
    strip.addEventListener('pointerleave', () => { tip.hidden = true; });
    window.addEventListener('resize', draw);
    await draw();
  };

  slider.max = String(duration || 1);
  names.checked = data.names;
  // A narrow page has the key on demand.
  if (window.innerWidth < 600) key.open = false;
  follow.checked = scene.is_ego.includes(true) && extent > 4 * FOLLOW_M;
  element('follow-label').hidden = !scene.is_ego.includes(true);
  begin();
})();
