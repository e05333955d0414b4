-- srdma in Wireshark and tshark: the parts of RoCEv2 over SRv6 that they lack (docs/wireshark.md).
--
--   * End.MT, MR and HMAC TLVs of SRHs
--   * Fast CNP, both options
--   * congestion notifications to END.C
--   * repair requests between nodes: an AETH with a reserved NAK code
--   * the ICRC of RoCEv2 packets, behind tunnels, and behind extension headers as if they were absent
--
-- They have tables for neither TLVs of SRHs nor options of IPv6, so this dissector walks the headers itself, after all
-- others. It needs Wireshark 4.0.

local srdma = Proto("srdma", "RDMA over SRv6")

srdma.prefs.end_mt = Pref.uint("Type of the End.MT TLV", 124, "the draft leaves it open")
srdma.prefs.mr = Pref.uint("Type of the MR TLV", 125, "the memory regions of a group's receivers")
srdma.prefs.fast_cnp_address = Pref.uint("Type of Fast CNP option 1", 0x9e, "the draft leaves it open")
srdma.prefs.fast_cnp_trace = Pref.uint("Type of Fast CNP option 2", 0x9e, "may be the same: the length tells")
srdma.prefs.notification = Pref.uint("ICMPv6 type of congestion notifications", 200, "the draft leaves it open")

local HMAC = 5
local ROCEV2_PORT = 4791
local HOP_BY_HOP, UDP, IPV6, ROUTING, ICMPV6, DESTINATION_OPTIONS = 0, 17, 41, 43, 58, 60
local SEGMENT_ROUTING = 4
local ACKNOWLEDGE, REPAIR_REQUEST = 0x11, 0x70

-- Maximum depth of nested headers.
local MOST_TUNNELS = 8

local asks = { [0] = "pause", [1] = "resume" }

local fields = {
    edge = ProtoField.ipv6("srdma.end_mt.edge", "Edge Node Address"),
    receivers = ProtoField.uint8("srdma.end_mt.receivers", "Num Receivers"),
    receiver = ProtoField.ipv6("srdma.end_mt.receiver.address", "Receiver Address"),
    receiver_qpn = ProtoField.uint24("srdma.end_mt.receiver.qpn", "Receiver QPN", base.HEX),
    region_edge = ProtoField.ipv6("srdma.mr.edge", "Edge Node Address"),
    regions = ProtoField.uint8("srdma.mr.regions", "Num Receivers"),
    region_address = ProtoField.uint64("srdma.mr.region.virtual_address", "Virtual Address", base.HEX),
    region_key = ProtoField.uint32("srdma.mr.region.rkey", "R_Key", base.HEX),
    hmac_d = ProtoField.bool("srdma.hmac.d", "Destination address verification disabled"),
    hmac_key = ProtoField.uint32("srdma.hmac.key_id", "HMAC Key ID"),
    hmac = ProtoField.bytes("srdma.hmac.value", "HMAC"),
    option = ProtoField.uint8("srdma.fast_cnp.option", "Fast CNP option"),
    original = ProtoField.ipv6("srdma.fast_cnp.original_destination", "Original Destination"),
    trace = ProtoField.bytes("srdma.fast_cnp.trace", "IOAM trace"),
    cnp_count = ProtoField.uint32("srdma.cnp.count", "CNPs that it stands for"),
    cnp_load = ProtoField.uint32("srdma.cnp.load", "Load of the path"),
    cnp_rate = ProtoField.uint32("srdma.cnp.rate_mbit_per_s", "Notified rate in Mbit/s"),
    cnp_flows = ProtoField.uint16("srdma.cnp.flows", "Congested flows of the receiver"),
    cnp_period = ProtoField.uint16("srdma.cnp.period_us", "Period of CNPs of each in microseconds"),
    ask = ProtoField.uint8("srdma.end_c.ask", "Asks for", base.DEC, asks),
    version = ProtoField.uint8("srdma.end_c.version", "Version"),
    class = ProtoField.uint8("srdma.end_c.traffic_class", "Traffic Class"),
    level = ProtoField.uint8("srdma.end_c.level", "Level"),
    sequence = ProtoField.uint32("srdma.end_c.sequence", "Sequence Number"),
    hold = ProtoField.uint32("srdma.end_c.hold_us", "Hold Time in microseconds"),
    congested = ProtoField.ipv6("srdma.end_c.congested", "Congested node"),
    repair_psn = ProtoField.uint24("srdma.repair.psn", "Repair request from PSN"),
    repair_packets = ProtoField.uint24("srdma.repair.packets", "Requested packets"),
    icrc = ProtoField.uint32("srdma.icrc", "ICRC", base.HEX),
    icrc_status = ProtoField.string("srdma.icrc.status", "ICRC status"),
}
srdma.fields = fields

local malformed, wrong = expert.group.MALFORMED, expert.severity.ERROR
local experts = {
    overrun = ProtoExpert.new("srdma.overrun", "Runs over the header that it is in", malformed, wrong),
    length = ProtoExpert.new("srdma.length", "Length and number of entries contradict each other", malformed, wrong),
    icrc = ProtoExpert.new("srdma.icrc.bad", "Bad ICRC", expert.group.CHECKSUM, wrong),
    checksum = ProtoExpert.new("srdma.end_c.checksum.bad", "Bad checksum", expert.group.CHECKSUM, wrong),
    version = ProtoExpert.new("srdma.end_c.version.unknown", "Unknown version", expert.group.UNDECODED, wrong),
    hold = ProtoExpert.new("srdma.end_c.hold.zero", "A pause of no length", expert.group.PROTOCOL, wrong),
    no_receiver = ProtoExpert.new("srdma.end_mt.empty", "A list without receivers", expert.group.PROTOCOL,
        expert.severity.WARN),
    without_cnp = ProtoExpert.new("srdma.fast_cnp.no_cnp", "A Fast CNP option on a packet that is no CNP",
        expert.group.PROTOCOL, expert.severity.WARN),
}
srdma.experts = {}
for _, info in pairs(experts) do table.insert(srdma.experts, info) end

local band, bor, bxor, rshift = bit.band, bit.bor, bit.bxor, bit.rshift

-- CRC-32 of IEEE 802.3, reflected, octet by octet.

local crc_of_octet = {}
for octet = 0, 255 do
    local crc = octet
    for _ = 1, 8 do
        crc = band(crc, 1) == 1 and bxor(rshift(crc, 1), 0xEDB88320) or rshift(crc, 1)
    end
    crc_of_octet[octet] = crc
end

local function crc32(text)
    local crc = 0xFFFFFFFF
    for place = 1, #text do
        crc = bxor(rshift(crc, 8), crc_of_octet[band(bxor(crc, text:byte(place)), 255)])
    end
    -- The library's numbers have signs.
    return bxor(crc, 0xFFFFFFFF) % 0x100000000
end

local function octets(buffer, from, count)
    return count == 0 and "" or buffer:bytes(from, count):raw()
end

local function u16(number)
    return string.char(math.floor(number / 256) % 256, number % 256)
end

-- The ICRC of a RoCEv2 packet (IBTA annex A17.3.3): over a link header of ones, with ones for fields that change on the path.
-- Extension headers count as absent, and the destination is the last segment's.
local function icrc_of(packet)
    local buffer, ipv6, udp, last = packet.buffer, packet.ipv6, packet.udp, packet.last
    local first_word = string.char(bor(buffer(ipv6, 1):uint(), 0x0F)) .. ("\255"):rep(3)
    local header = first_word .. u16(last - udp) .. string.char(UDP) .. "\255"
        .. octets(buffer, ipv6 + 8, 16) .. octets(buffer, packet.destination, 16)
    local ports = octets(buffer, udp, 6) .. "\255\255"
    local bth = octets(buffer, udp + 8, 4) .. "\255" .. octets(buffer, udp + 13, 7)
    local rest = octets(buffer, udp + 20, last - 4 - udp - 20)
    return crc32(("\255"):rep(8) .. header .. ports .. bth .. rest)
end

local CNP = 0x81

local function dissect_rocev2(packet, tree)
    local buffer, udp, last = packet.buffer, packet.udp, packet.last
    -- UDP header, BTH, ICRC.
    if last - udp < 24 then return end
    if last > buffer:reported_len() then
        tree:add(fields.icrc_status, "bad"):set_generated():add_proto_expert_info(experts.overrun)
        return
    elseif last > buffer:len() then
        tree:add(fields.icrc_status, "not captured"):set_generated()
        return
    end
    if packet.fast_cnp and buffer(udp + 8, 1):uint() ~= CNP then
        tree:add_proto_expert_info(experts.without_cnp)
    end
    if last - udp >= 40 and buffer(udp + 8, 1):uint() == CNP then
        -- Zero from and to hosts that know neither.
        for place, field in pairs({ [20] = fields.cnp_count, [24] = fields.cnp_load, [28] = fields.cnp_rate }) do
            if buffer(udp + place, 4):uint() > 0 then
                tree:add(field, buffer(udp + place, 4))
            end
        end
        if buffer(udp + 32, 2):uint() > 0 then
            tree:add(fields.cnp_flows, buffer(udp + 32, 2))
            tree:add(fields.cnp_period, buffer(udp + 34, 2))
        end
    end
    local is_request = last - udp >= 28 and buffer(udp + 8, 1):uint() == ACKNOWLEDGE
    if is_request and buffer(udp + 20, 1):uint() == REPAIR_REQUEST then
        tree:add(fields.repair_psn, buffer(udp + 17, 3))
        tree:add(fields.repair_packets, buffer(udp + 21, 3))
    end
    local item = tree:add_le(fields.icrc, buffer(last - 4, 4))
    local is_good = icrc_of(packet) == buffer(last - 4, 4):le_uint()
    tree:add(fields.icrc_status, is_good and "ok" or "bad"):set_generated()
    if not is_good then item:add_proto_expert_info(experts.icrc) end
end

-- Receivers of an End.MT TLV, or regions of an MR TLV.
local function dissect_list(buffer, from, length, tree, names)
    if length < 22 then
        tree:add_proto_expert_info(experts.length)
        return
    end
    local count = buffer(from + 20, 1):uint()
    tree:add(names.edge, buffer(from + 4, 16))
    local counted = tree:add(names.count, buffer(from + 20, 1))
    if length ~= 22 + names.entry * count then
        counted:add_proto_expert_info(experts.length)
        return
    end
    if count == 0 then counted:add_proto_expert_info(experts.no_receiver) end
    for place = 0, count - 1 do
        names.show(buffer, from + 24 + names.entry * place, tree)
    end
end

local receivers = {
    edge = fields.edge,
    count = fields.receivers,
    entry = 20,
    show = function(buffer, from, tree)
        local item = tree:add(fields.receiver, buffer(from, 16))
        item:add(fields.receiver_qpn, buffer(from + 16, 3))
    end,
}

local regions = {
    edge = fields.region_edge,
    count = fields.regions,
    entry = 12,
    show = function(buffer, from, tree)
        local item = tree:add(fields.region_address, buffer(from, 8))
        item:add(fields.region_key, buffer(from + 8, 4))
    end,
}

local function dissect_tlv(buffer, from, kind, length, tree)
    local range = buffer(from, 2 + length)
    if kind == srdma.prefs.end_mt then
        dissect_list(buffer, from, length, tree:add(srdma, range, "End.MT TLV"), receivers)
    elseif kind == srdma.prefs.mr then
        dissect_list(buffer, from, length, tree:add(srdma, range, "MR TLV"), regions)
    elseif kind == HMAC then
        local item = tree:add(srdma, range, "HMAC TLV")
        if length < 6 then
            item:add_proto_expert_info(experts.length)
            return
        end
        item:add(fields.hmac_d, buffer(from + 2, 1), band(buffer(from + 2, 1):uint(), 0x80) ~= 0)
        item:add(fields.hmac_key, buffer(from + 4, 4))
        if length > 6 then item:add(fields.hmac, buffer(from + 8, length - 6)) end
    end
end

-- Calls `found` with place, type and length of each TLV or option; those of type 0 are single octets.
local function each_tlv(buffer, from, to, tree, found)
    while from < to do
        local kind = buffer(from, 1):uint()
        if kind == 0 then
            from = from + 1
        else
            local length = from + 1 < to and buffer(from + 1, 1):uint() or to
            if from + 2 + length > to then
                tree:add_proto_expert_info(experts.overrun)
                return
            end
            found(from, kind, length)
            from = from + 2 + length
        end
    end
end

local function dissect_srh(buffer, from, to, tree)
    local tlvs = from + 8 + 16 * (buffer(from + 4, 1):uint() + 1)
    each_tlv(buffer, tlvs, to, tree, function(place, kind, length)
        dissect_tlv(buffer, place, kind, length, tree)
    end)
end

-- Whether there is a Fast CNP among the options.
local function dissect_options(buffer, from, to, tree)
    local address, trace = srdma.prefs.fast_cnp_address, srdma.prefs.fast_cnp_trace
    local is_fast_cnp = false
    each_tlv(buffer, from + 2, to, tree, function(place, kind, length)
        local is_address = kind == address and (length == 16 or kind ~= trace)
        local is_trace = kind == trace and not is_address
        if not is_address and not is_trace then return end
        is_fast_cnp = true
        local item = tree:add(srdma, buffer(place, 2 + length), "Fast CNP option")
        item:add(fields.option, buffer(place, 1), is_address and 1 or 2)
        if is_address and length ~= 16 or is_trace and length < 26 then
            item:add_proto_expert_info(experts.length)
            return
        end
        if is_trace then item:add(fields.trace, buffer(place + 2, length - 16)) end
        item:add(fields.original, buffer(place + 2 + length - 16, 16))
    end)
    return is_fast_cnp
end

-- The one's complement sum of 16-bit words.
local function sum_of(text)
    local sum = 0
    for place = 1, #text, 2 do
        sum = sum + text:byte(place) * 256 + (text:byte(place + 1) or 0)
    end
    while sum > 0xFFFF do sum = sum % 0x10000 + math.floor(sum / 0x10000) end
    return sum
end

local VERSION, NOTIFICATION_OCTETS = 1, 32

local function dissect_notification(packet, from, tree)
    local buffer, last = packet.buffer, packet.last
    local item = tree:add(srdma, buffer(from, last - from), "Congestion notification (END.C)")
    if last - from < NOTIFICATION_OCTETS then
        item:add_proto_expert_info(experts.length)
        return
    end
    local pseudo = octets(buffer, packet.ipv6 + 8, 32) .. "\0\0" .. u16(last - from) .. "\0\0\0" .. string.char(ICMPV6)
    if sum_of(pseudo .. octets(buffer, from, last - from)) ~= 0xFFFF then
        item:add_proto_expert_info(experts.checksum)
    end
    local asks_for = buffer(from + 1, 1)
    item:add(fields.ask, asks_for)
    local version = item:add(fields.version, buffer(from + 4, 1))
    if buffer(from + 4, 1):uint() ~= VERSION then version:add_proto_expert_info(experts.version) end
    item:add(fields.class, buffer(from + 5, 1))
    item:add(fields.level, buffer(from + 6, 1))
    item:add(fields.sequence, buffer(from + 8, 4))
    local hold = item:add(fields.hold, buffer(from + 12, 4))
    if asks_for:uint() == 0 and buffer(from + 12, 4):uint() == 0 then hold:add_proto_expert_info(experts.hold) end
    item:add(fields.congested, buffer(from + 16, 16))
end

local function is_extension(header)
    return header == HOP_BY_HOP or header == DESTINATION_OPTIONS or header == ROUTING
end

-- An IPv6 packet, and those in it.
local function dissect_ipv6(buffer, ipv6, tree, depth)
    if depth > MOST_TUNNELS or buffer:len() < ipv6 + 40 then return end
    local last = ipv6 + 40 + buffer(ipv6 + 4, 2):uint()
    local packet = { buffer = buffer, ipv6 = ipv6, destination = ipv6 + 24, last = last, fast_cnp = false }
    local header, from = buffer(ipv6 + 6, 1):uint(), ipv6 + 40
    while is_extension(header) do
        if buffer:len() < from + 8 then return end
        local to = from + 8 * (buffer(from + 1, 1):uint() + 1)
        if to > math.min(last, buffer:len()) then
            tree:add_proto_expert_info(experts.overrun)
            return
        end
        if header == ROUTING and buffer(from + 2, 1):uint() == SEGMENT_ROUTING then
            dissect_srh(buffer, from, to, tree)
            local is_on_its_way = buffer(from + 3, 1):uint() > 0 and to >= from + 24
            if is_on_its_way then packet.destination = from + 8 end
        elseif header == DESTINATION_OPTIONS then
            packet.fast_cnp = dissect_options(buffer, from, to, tree) or packet.fast_cnp
        end
        header, from = buffer(from, 1):uint(), to
    end
    if buffer:len() < from + 4 then return end
    if header == IPV6 then
        dissect_ipv6(buffer, from, tree, depth + 1)
    elseif header == UDP and buffer(from + 2, 2):uint() == ROCEV2_PORT then
        packet.udp = from
        dissect_rocev2(packet, tree)
    elseif header == ICMPV6 and buffer(from, 1):uint() == srdma.prefs.notification and last <= buffer:len() then
        dissect_notification(packet, from, tree)
    end
end

local VLAN, QINQ, ETHERTYPE_IPV6 = 0x8100, 0x88A8, 0x86DD
local is_ethernet = Field.new("eth.type")

function srdma.dissector(buffer, _, tree)
    if not is_ethernet() or buffer:len() < 14 then return end
    local from, ethertype = 14, buffer(12, 2):uint()
    while (ethertype == VLAN or ethertype == QINQ) and buffer:len() >= from + 4 do
        ethertype, from = buffer(from + 2, 2):uint(), from + 4
    end
    if ethertype == ETHERTYPE_IPV6 then
        dissect_ipv6(buffer, from, tree:add(srdma, buffer(from)), 1)
    end
end

register_postdissector(srdma)
