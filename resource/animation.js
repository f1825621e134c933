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
  const [rowStart, actorOf, laneOf, displayOf] = ['row_start', 'actor', 'lane', 'display'].map(
    (name) => unpack(Int32Array, scene[name]));
  const [positions, yaws, speeds, footprints] = ['position_xy', 'yaw', 'speed', 'footprint_xy']
    .map((name) => unpack(Float32Array, scene[name]));
  const duration = times.length ? times[times.length - 1] : 0;

  // The colors end with those of unknown speed, objects and the ego.
  const nScale = colors.length - 3;
  const [UNKNOWN, OBJECT, EGO] = [nScale, nScale + 1, nScale + 2];
  // A footprint that is shorter, pixels, is too small to be seen and gets a dot.
  const SHORTEST_PX = 7;
  const FOLLOW_M = 60;
  // plotly reports a turn of the wheel after a pause, ms.
  const WHEEL_MS = 250;
  // Pixels at the sides of both figures, as in their layout.
  const MARGIN_LEFT = data.strip.layout.margin.l;
  const MARGINS = MARGIN_LEFT + data.strip.layout.margin.r;

  const [map, strip, cursor, key, play, slider, clock, pace, names, follow, followLabel] = [
    'map', 'strip', 'cursor', 'key', 'play', 'time', 'clock', 'pace', 'names', 'follow',
    'follow-label'].map((id) => document.getElementById(id));

  // The last instant that is not after `time`.
  const instantAt = (time) => Math.max(times.findLastIndex((each) => each <= time), 0);

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
        if (Math.hypot(dx, dy) <= data.max_speed * period + 0.2) {
          const turn = yaws[next] - yaw;
          [x, y] = [x + share * dx, y + share * dy];
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
    const state = { 'traffic light': display || 'state unknown', 'traffic sign': kind,
      'speed limit sign': display ? `${display} km/h` : 'limit unknown' }[kind]
      || (Number.isFinite(speed) ? `${speed.toFixed(1)} m/s, ${(3.6 * speed).toFixed(1)} km/h`
        : 'speed unknown');
    const [road, section, lane] = scene.lanes[laneOf[row]] || [];
    const where = lane ? `<br>road ${road}, section ${section}, lane ${lane}` : '';
    const size = scene.has_size[actor] || data.symbols[kind] ? '' : '<br>size assumed';
    return `<b>${scene.names[actor]}</b><br>${state}${where}${size}`;
  };

  // Boxes are left, bottom, right, top.
  const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
  const hits = (boxes, box, own) => boxes.some((other) => other !== own && overlap(box, other));
  const around = (x, y, radius) => [x - radius, y - radius, x + radius, y + radius];
  const joined = (a, b) => [Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[2], b[2]),
    Math.max(a[3], b[3])];

  // Where a name can be beside a box, in pixels: to the right (1) or left, above (1) or below, and
  // how many lines further; and on it. plotly attaches the name to the anchor.
  const NAME_HEIGHT = 13;
  const PLACES = [
    [0, 1, 0], [0, -1, 0], [1, 0, 0], [-1, 0, 0], [0, 1, 1], [0, -1, 1], [0, 1, 2], [0, -1, 2]];
  const [ANY, LINE, MIDDLE] = [[...PLACES.keys()], [0, 1], [PLACES.push([0, 0, 0]) - 1]];
  const placed = ([left, bottom, right, top], [side, up, lines], width) => {
    const x = [left, (left + right) / 2, right][side + 1];
    const y = [bottom, (bottom + top) / 2, top][up + 1] + up * lines * NAME_HEIGHT;
    const [begin, low] = [x + (side - 1) / 2 * width, y + (up - 1) / 2 * NAME_HEIGHT];
    return { x, y, box: [begin, low, begin + width, low + NAME_HEIGHT],
      position: `${['bottom', 'middle', 'top'][up + 1]} ${['left', 'center', 'right'][side + 1]}` };
  };
  // That of each actor at the last instant: a name stays where it is while that is free.
  const placeOf = new Int8Array(scene.names.length);
  const wasNamed = new Uint8Array(scene.names.length);
  const ruler = document.createElement('canvas').getContext('2d');
  ruler.font = data.name_font;
  // With the halo and the gap to the actor.
  const widths = scene.names.map((name) => ruler.measureText(name).width + 8);

  // Calls take(place) for each of `named`, { text, width, anchors, places }, with a place at one
  // of its anchors that is in `view` and covers none of `taken`: that with the least cost.
  const placeNames = (named, view, taken, costOf, take) => {
    for (const each of named) {
      let [best, least] = [null, Infinity];
      for (const [own, k] of each.anchors.flatMap((box) => each.places.map((k) => [box, k]))) {
        const place = placed(own, PLACES[k], each.width);
        const [left, bottom, right, top] = place.box;
        const isInView = left >= view[0] && bottom >= view[1] && right <= view[2] && top <= view[3];
        const cost = isInView && !hits(taken, place.box) ? costOf(place.box, own) : Infinity;
        if (cost < least) [best, least] = [{ ...each, ...place, k }, cost];
        if (cost === 0) break;
      }
      if (!best) continue;
      taken.push(best.box);
      take(best);
    }
  };

  // Texts of a trace, and what adds one from its place in pixels.
  const newLabels = (perPixelX, perPixelY, bottom = 0) => {
    const labels = { x: [], y: [], text: [], textposition: [] };
    const add = ({ x, y, text, position }) => Object.entries(
      { x: x * perPixelX, y: bottom + y * perPixelY, text, textposition: position }).forEach(
      ([name, value]) => labels[name].push(value));
    return { labels, add };
  };

  // Corners of the closed polygon `points` (u, v) in the axes of a road user at x, y, yaw.
  // Returns the box around it.
  const addShape = (trace, points, x, y, yaw) => {
    const [cos, sin] = [Math.cos(yaw), Math.sin(yaw)];
    for (const [u, v] of points) {
      trace.x.push(x + cos * u - sin * v);
      trace.y.push(y + sin * u + cos * v);
    }
    const [xs, ys] = [trace.x, trace.y].map((each) => each.slice(-points.length));
    trace.x.push(null);
    trace.y.push(null);
    return [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
  };

  // The outline of each actor, an arrow head at its front, and its middle; its own axes.
  const shapes = scene.names.map((_, actor) => {
    const corners = [0, 1, 2, 3].map((k) => footprints.subarray(8 * actor + 2 * k).slice(0, 2));
    const [a, b, c, d] = corners;
    const at = (f, l) => [0, 1].map((k) => (
      (a[k] + c[k]) / 2 + f * (a[k] + b[k] - c[k] - d[k]) / 4 + l * (a[k] - b[k]) / 2));
    return { outline: [...corners, a], middle: at(0, 0),
      length: Math.hypot(a[0] - d[0], a[1] - d[1]),
      head: [at(0.75, 0), at(0.2, 0.6), at(0.2, -0.6), at(0.75, 0)] };
  });

  // Around both ends of the mark of a lane change.
  const MARK_PX = 7;
  // Copies: plotly writes the arrays of each update into the traces that it is given.
  const plainEdge = { ...data.map.data[parts.points].marker.line };
  const { size: _, angle: __, ...changeMark } = data.map.data[parts.changes].marker;
  // What the traces of the map hold at `time`, in the order of `filled`, and where the ego is;
  // `pixel` is the length of a pixel, m.
  const filled = [...parts.classes, parts.outlines, parts.assumed, parts.fronts, parts.points,
    parts.labels, parts.changes];
  const snapshot = (time, pixel) => {
    const fills = colors.map(() => ({ x: [], y: [] }));
    const [outlines, assumed, fronts] = [0, 1, 2].map(() => ({ x: [], y: [] }));
    const { labels, add } = newLabels(pixel, pixel);
    const [dots, named, numbers] = [[], [], []];
    let ego = null;
    visitAll(time, (actor, row, x, y, yaw, speed) => {
      const isEgo = scene.is_ego[actor];
      const symbol = isEgo ? undefined : data.symbols[scene.kinds[actor]];
      const display = scene.displays[displayOf[row]];
      const { outline, head, length, middle: [u, v] } = shapes[actor];
      const isDot = length < SHORTEST_PX * pixel;
      const [cos, sin] = symbol ? [0, 0] : [Math.cos(yaw), Math.sin(yaw)];
      const dot = { x: x + cos * u - sin * v, y: y + sin * u + cos * v,
        text: describe(actor, row, speed), isEgo };
      let box = [dot.x, dot.y, dot.x, dot.y];
      if (symbol) {
        Object.assign(dot, { color: symbol.fills[display] || symbol.fills[''], opacity: 1,
          size: symbol.size, edge: { color: symbol.edge[0], width: symbol.edge[1] } });
        if (scene.kinds[actor] === 'speed limit sign') {
          numbers.push({ text: display || '?', width: symbol.size, places: MIDDLE,
            anchors: [around(dot.x / pixel, dot.y / pixel, 0)] });
        }
      } else {
        const kind = classOf(actor, speed);
        box = addShape(fills[kind], outline, x, y, yaw);
        addShape(scene.has_size[actor] ? outlines : assumed, outline, x, y, yaw);
        if ((scene.is_vehicle[actor] || isEgo) && !isDot) addShape(fronts, head, x, y, yaw);
        Object.assign(dot, { color: colors[kind], size: { [EGO]: 12, [OBJECT]: 6 }[kind] || 9,
          edge: plainEdge, opacity: isDot ? 1 : 0 });
      }
      dots.push(dot);
      named.push({ actor, isEgo, text: scene.names[actor], width: widths[actor],
        places: [placeOf[actor], ...ANY], anchors: [joined(box.map((each) => each / pixel), around(
          dot.x / pixel, dot.y / pixel, dot.opacity ? dot.size / 2 : 0))] });
      if (isEgo) ego = [x, y];
    });
    const view = viewOf(ego).map((each) => each / pixel);
    const shown = named.filter(({ anchors: [box] }) => overlap(box, view));
    const [actors, taken] = [shown.map(({ anchors: [box] }) => box), []];
    // The marks of lane changes that cover neither an actor nor another mark.
    const marked = data.changes.filter(({ x, y, end_x: u, end_y: v }) => {
      const box = joined(around(x / pixel, y / pixel, MARK_PX),
        around(u / pixel, v / pixel, MARK_PX));
      const isFree = overlap(box, view) && !hits(actors, box) && !hits(taken, box);
      if (isFree) taken.push(box);
      return isFree;
    });
    placeNames(numbers, view, taken, () => 0, add);
    // First the ego's name, then those that were there; none covers an actor.
    shown.sort((a, b) => b.isEgo - a.isEgo || wasNamed[b.actor] - wasNamed[a.actor]);
    wasNamed.fill(0);
    placeNames(names.checked ? shown : [], view, taken,
      (box, own) => (hits(actors, box, own) ? Infinity : 0), (place) => {
        [placeOf[place.actor], wasNamed[place.actor]] = [place.k, 1];
        add(place);
      });
    const changes = { x: marked.flatMap((each) => [each.x, each.end_x, null]),
      y: marked.flatMap((each) => [each.y, each.end_y, null]),
      // At both ends: plotly shows an empty box for a point without text.
      text: marked.flatMap((each) => [each.text, each.text, '']),
      marker: { ...changeMark, size: marked.flatMap(() => [0, 10, 0]),
        angle: marked.flatMap((each) => [0, each.angle, 0]) } };
    // The ego on top of all others: the last one.
    dots.sort((a, b) => a.isEgo - b.isEgo);
    const [x, y, text, color, size, opacity, edges] = [
      'x', 'y', 'text', 'color', 'size', 'opacity', 'edge'].map(
      (name) => dots.map((dot) => dot[name]));
    const line = { color: edges.map((edge) => edge.color), width: edges.map((edge) => edge.width) };
    const points = { x, y, text, marker: { color, size, opacity, line } };
    return { traces: [...fills, outlines, assumed, fronts, points, labels, changes], ego };
  };

  // While the view follows the ego: half of its width, m, and the place of its center from the
  // ego, m. Zooming and panning change these.
  const FOLLOWING = { half: FOLLOW_M, offset: [0, 0] };
  let following = { ...FOLLOWING };
  const followed = ([x, y]) => {
    const [{ half, offset: [dx, dy] }, { l, r, t, b }] = [following, data.map.layout.margin];
    const shape = (map.clientHeight - t - b) / Math.max(map.clientWidth - l - r, 1);
    return { 'xaxis.range': [x + dx - half, x + dx + half],
      'yaxis.range': [y + dy - half * shape, y + dy + half * shape] };
  };

  // The part of the world that the map shows.
  const viewOf = (ego) => {
    const { xaxis, yaxis } = map.layout;
    const [[left, right], [bottom, top]] = follow.checked && ego
      ? Object.values(followed(ego)) : [xaxis.range, yaxis.range];
    return [left, bottom, right, top];
  };

  // plotly writes into the layout that it is given: copies.
  const [wholeX, wholeY] = [[...data.map.layout.xaxis.range], [...data.map.layout.yaxis.range]];
  const extent = Math.max(wholeX[1] - wholeX[0], wholeY[1] - wholeY[0]);

  // The user moves the map until the last of these, ms: it is not drawn elsewhere meanwhile.
  let [now, isDrawing, isStale, egoNow, heldUntil] = [data.start_s, false, false, null, 0];
  const hold = (durationMs) => {
    heldUntil = performance.now() + durationMs;
    if (Number.isFinite(durationMs)) setTimeout(draw, durationMs + 1);
  };

  // What plotly updates in traces.
  const contentOf = (traces) => Object.fromEntries(['x', 'y', 'text', 'marker', 'textposition'].map(
    (name) => [name, traces.map((trace) => trace[name])]));

  const drawMap = async () => {
    const [left, , right] = viewOf([0, 0]);
    const { traces, ego } = snapshot(
      now, (right - left) / Math.max(map.clientWidth - MARGINS, 1));
    egoNow = ego;
    await Plotly.update(map, contentOf(traces), follow.checked && ego ? followed(ego) : {}, filled);
  };

  const draw = async () => {
    isStale = true;
    if (isDrawing) return;
    isDrawing = true;
    while (isStale) {
      isStale = false;
      if (performance.now() >= heldUntil) await drawMap();
    }
    isDrawing = false;
    cursor.style.left = `${MARGIN_LEFT + now / (duration || 1) * (strip.clientWidth - MARGINS)}px`;
    slider.value = String(now);
    clock.value = `${now.toFixed(2)} / ${Number(duration.toFixed(2))} s`;
  };

  let [isPlaying, lastTick] = [false, 0];

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
    seek(times[Math.min(Math.max(instantAt(now) + n, 0), times.length - 1)] || 0);
  };

  play.addEventListener('click', () => setPlaying(!isPlaying));
  slider.addEventListener('input', () => seek(Number(slider.value)));
  names.addEventListener('change', () => fit(strip));
  follow.addEventListener('change', async () => {
    following = { ...FOLLOWING };
    if (!follow.checked) {
      await Plotly.relayout(map, { 'xaxis.range': wholeX, 'yaxis.range': wholeY });
    }
    draw();
  });
  document.addEventListener('keydown', (event) => {
    if (event.target.tagName === 'SELECT') return;
    const action = { ' ': () => setPlaying(!isPlaying), ArrowRight: () => step(1),
      ArrowLeft: () => step(-1) }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });

  // The user has zoomed or panned. While the view follows the ego, it goes on with this part.
  const keepView = (change) => {
    if (!Object.keys(change).some((key) => key.startsWith('xaxis'))) return;
    heldUntil = 0;
    const [x, y] = [map.layout.xaxis.range, map.layout.yaxis.range];
    if (follow.checked && egoNow) {
      const isWhole = Math.abs(x[0] - wholeX[0]) + Math.abs(x[1] - wholeX[1]) < 1e-6 * extent;
      following = isWhole ? { ...FOLLOWING } : { half: (x[1] - x[0]) / 2,
        offset: [(x[0] + x[1]) / 2 - egoNow[0], (y[0] + y[1]) / 2 - egoNow[1]] };
    }
    // Zooming in or out turns dots to boxes and back.
    if (!isPlaying) draw();
  };

  // The names of the lines of speed: above or below them, where they cover the fewest lines.
  const [STEP_PX, N_ANCHORS] = [8, 24];
  const nameLines = () => {
    const { margin: { t, b }, yaxis: { range: [low, high] } } = data.strip.layout;
    const [width, height] = [strip.clientWidth - MARGINS, strip.clientHeight - t - b];
    const lines = new Map(data.lines.map((actor) => [actor, []]));
    for (let px = 0; px < width; px += STEP_PX) {
      visitAll(px / width * duration, (actor, row, x, y, yaw, speed) => {
        if (!lines.has(actor) || !Number.isFinite(speed)) return;
        lines.get(actor).push(around(px, (speed - low) / (high - low) * height, 1));
      });
    }
    const all = [...lines.values()].flat();
    const named = [...lines].filter(([actor]) => names.checked && !scene.is_ego[actor]).map(
      ([actor, boxes]) => ({ text: scene.names[actor], width: widths[actor], places: LINE,
        anchors: boxes.filter((_box, i) => i % Math.ceil(boxes.length / N_ANCHORS) === 0) }));
    const { labels, add } = newLabels(duration / width, (high - low) / height, low);
    placeNames(named, [0, 0, width, height], [],
      (box) => all.filter((other) => overlap(other, box)).length, add);
    return Plotly.update(strip, contentOf([labels]), {}, [data.strip.data.length - 1]);
  };

  // A figure has the size of its element, also when the key opens or a notebook resizes the page.
  const fit = async (figure) => {
    // A wide page has no button for the key.
    if (window.innerWidth >= 600) key.open = true;
    if (!figure.clientWidth) return;
    await Plotly.relayout(figure, { width: figure.clientWidth, height: figure.clientHeight });
    if (figure === strip) nameLines();
    draw();
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
    const observer = new ResizeObserver((entries) => entries.forEach(({ target }) => fit(target)));
    [map, strip].forEach((figure) => observer.observe(figure));
    await draw();
  };

  slider.max = String(duration || 1);
  names.checked = data.names;
  // A narrow page has the key on demand.
  if (window.innerWidth < 600) key.open = false;
  follow.checked = scene.is_ego.includes(true) && extent > 4 * FOLLOW_M;
  followLabel.hidden = !scene.is_ego.includes(true);
  begin();
})();
