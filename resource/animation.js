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
  const footprints = unpack(Float32Array, scene.footprint_xy);
  const duration = times.length ? times[times.length - 1] : 0;

  // The colours end with those of unknown speed, objects and the ego.
  const nScale = colors.length - 3;
  const [UNKNOWN, OBJECT, EGO] = [nScale, nScale + 1, nScale + 2];
  // Where a pixel is longer than this, m, a box is too small to be seen and gets a dot.
  const DOTS_ABOVE = 0.6;
  const FOLLOW_M = 60;
  // Pixels at the sides of both figures, as their layout says.
  const MARGIN_LEFT = data.strip.layout.margin.l;
  const MARGINS = MARGIN_LEFT + data.strip.layout.margin.r;

  const element = (id) => document.getElementById(id);
  const [map, strip, cursor, play, slider, clock, pace, follow] = [
    'map', 'strip', 'cursor', 'play', 'time', 'clock', 'pace', 'follow'].map(element);

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

  // Calls visit(actor, row, x, y, yaw, speed) for everybody who is there at `time`.
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
    if (data.coloring === 'actor') return actor % nScale;
    if (!Number.isFinite(speed)) return UNKNOWN;
    const [low, high] = data.speed_range;
    const k = Math.floor((speed - low) / (high - low) * nScale);
    return Math.min(Math.max(k, 0), nScale - 1);
  };

  const describe = (actor, row, speed) => {
    const lane = scene.lanes[laneOf[row]];
    const pace_ = Number.isFinite(speed)
      ? `${speed.toFixed(1)} m/s, ${(3.6 * speed).toFixed(0)} km/h` : 'speed unknown';
    const where = lane ? `<br>road ${lane[0]}, section ${lane[1]}, lane ${lane[2]}` : '';
    return `<b>${scene.names[actor]}</b><br>${pace_}${where}`;
  };

  // Corners of the closed polygon `points` (u, v) in the axes of a road user at x, y, yaw.
  const addShape = (trace, points, x, y, yaw) => {
    const [cos, sin] = [Math.cos(yaw), Math.sin(yaw)];
    for (const [u, v] of points) {
      trace.x.push(x + cos * u - sin * v);
      trace.y.push(y + sin * u + cos * v);
    }
    trace.x.push(null);
    trace.y.push(null);
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

  // What the traces of the map hold at `time`, in the order of `filled`, and where the ego is.
  const filled = [...parts.classes, parts.fronts, parts.points];
  const snapshot = (time, isFar) => {
    const outlines = colors.map(() => ({ x: [], y: [] }));
    const fronts = { x: [], y: [] };
    const points = { x: [], y: [], text: [] };
    const dots = { color: [], size: [] };
    let ego = null;
    let iEgo = -1;
    visitAll(time, (actor, row, x, y, yaw, speed) => {
      const shape = shapes[actor];
      const kind = classOf(actor, speed);
      addShape(outlines[kind], shape.outline, x, y, yaw);
      if (scene.is_vehicle[actor] && !isFar) addShape(fronts, shape.head, x, y, yaw);
      const [u, v] = shape.middle;
      points.x.push(x + Math.cos(yaw) * u - Math.sin(yaw) * v);
      points.y.push(y + Math.sin(yaw) * u + Math.cos(yaw) * v);
      points.text.push(describe(actor, row, speed));
      dots.color.push(colors[kind]);
      dots.size.push({ [EGO]: 12, [OBJECT]: 6 }[kind] || 9);
      if (kind === EGO) [ego, iEgo] = [[x, y], points.x.length - 1];
    });
    // The ego on top of all others: the last one.
    for (const column of iEgo < 0 ? [] : [points.x, points.y, points.text, dots.color, dots.size]) {
      column.push(...column.splice(iEgo, 1));
    }
    points.marker = { ...data.map.data[parts.points].marker, ...dots, opacity: isFar ? 1 : 0 };
    return { traces: [...outlines, fronts, points], ego };
  };

  const metresPerPixel = () => {
    const [low, high] = map.layout.xaxis.range;
    return (high - low) / Math.max(map.clientWidth - MARGINS, 1);
  };

  const around = ([x, y]) => {
    const half = FOLLOW_M * map.clientHeight / Math.max(map.clientWidth, 1);
    return { 'xaxis.range': [x - FOLLOW_M, x + FOLLOW_M], 'yaxis.range': [y - half, y + half] };
  };

  // plotly writes into the layout that it is given: copies.
  const [wholeX, wholeY] = [[...data.map.layout.xaxis.range], [...data.map.layout.yaxis.range]];
  const extent = Math.max(wholeX[1] - wholeX[0], wholeY[1] - wholeY[0]);

  let now = data.start_s;
  let isDrawing = false;

  const draw = async () => {
    if (isDrawing) return;
    isDrawing = true;
    const { traces, ego } = snapshot(now, !follow.checked && metresPerPixel() > DOTS_ABOVE);
    const each = (name) => traces.map((trace) => trace[name]);
    try {
      await Plotly.update(
        map, { x: each('x'), y: each('y'), text: each('text'), marker: each('marker') },
        follow.checked && ego ? around(ego) : {}, filled);
    } finally {
      isDrawing = false;
    }
    cursor.style.left = `${MARGIN_LEFT + now / (duration || 1) * (strip.clientWidth - MARGINS)}px`;
    slider.value = String(now);
    clock.value = `${now.toFixed(2)} / ${duration.toFixed(2)} s`;
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
  follow.addEventListener('change', async () => {
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

  const begin = async () => {
    const config = { responsive: true, displaylogo: false };
    await Plotly.newPlot(map, data.map.data, data.map.layout, { ...config, scrollZoom: true });
    await Plotly.newPlot(strip, data.strip.data, data.strip.layout,
      { ...config, displayModeBar: false });
    // Zooming in or out turns dots to boxes and back; our own changes come here as well.
    map.on('plotly_relayout', () => { if (!isPlaying && !follow.checked) draw(); });
    strip.addEventListener('click', (event) => {
      const x = event.clientX - strip.getBoundingClientRect().left - MARGIN_LEFT;
      seek(x / (strip.clientWidth - MARGINS) * duration);
    });
    window.addEventListener('resize', draw);
    await draw();
  };

  slider.max = String(duration || 1);
  follow.checked = scene.is_ego.includes(true) && extent > 4 * FOLLOW_M;
  element('follow-label').hidden = !scene.is_ego.includes(true);
  begin();
})();
